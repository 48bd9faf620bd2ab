"""Packages that an export or a file needs and that are not installed with `lowering`."""

import importlib
import importlib.metadata
import re
from typing import Any


def import_package(module: str, extra: str) -> Any:
    """A module of a package that one of the extras installs.

    Raises:
      ImportError: with the command that installs it, if it is missing, or with the reason why it
        cannot be imported.
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] != package:
            package = f"{error.name}, for {package}"
        raise ImportError(
            f"this needs {package}, which is not installed: {command(extra)}"
        ) from error
    except ImportError as error:
        raise ImportError(f"this needs {package}, which cannot be imported: {error}") from error


def command(extra: str) -> str:
    """The command that installs the packages of an extra, wherever this package came from."""
    try:
        requirements = importlib.metadata.requires("lowering") or ()
    except importlib.metadata.PackageNotFoundError:  # The sources are used as they are.
        requirements = ()
    of_extra = re.compile(rf"(.+?)\s*;.*\bextra == ['\"]{re.escape(extra)}['\"].*")
    found = [match[1] for match in map(of_extra.fullmatch, requirements) if match]
    if not found:
        return f"pip install '.[{extra}]' in a checkout of lowering"
    return f"pip install {' '.join(repr(requirement) for requirement in found)}"
