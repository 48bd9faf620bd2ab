"""Packages that an export needs and that are not installed with `lowering`."""

import importlib
from typing import Any


def import_package(module: str, extra: str) -> Any:
    """A module of a package that one of the extras installs.

    Raises:
      ImportError: with the command that installs it, if it is missing.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".")[0]
        raise ImportError(
            f"this export needs {package}, which is not installed: pip install 'lowering[{extra}]'"
        ) from error
