"""Errors of a command line, with what was probably meant."""

import difflib
import importlib.machinery
import pathlib
import re
import sys
from collections.abc import Iterable

# Arguments of exporters that messages name, and the options in their place.
_OPTIONS = {
    r"verify=False": "--no-verify",
    r"tolerance=\.\.\.": "--tolerance",
    r"params= gives": "--params gives",
    r"overwrite=True": "--force",
    r'quantize="(\w+)"': r"--quantize \1",
    r"by input_names": "in --arg",
    r"\bpolymorphic_constraints has ('[^']*'), but ": r"--constraint \1: ",
    r"\bpolymorphic_constraints has ('[^']*'), which ": r"--constraint \1 ",
    r"\bpolymorphic_shapes\b": "--arg",
    r"^output_names\b": "--output-names",
    r"^opset\b": "--opset",
}


class CommandError(Exception):
    """The command makes no sense."""


class FaultError(Exception):
    """What the command names exists, but fails to run."""


def in_options(message: str) -> str:
    """A message that names arguments of exporters, with the options in their place."""
    for argument, option in _OPTIONS.items():
        message = re.sub(argument, option, message)
    return message


def hidden_module(error: BaseException) -> str:
    """The end of a message of an import, if a file in the current directory hides a package."""
    if not isinstance(error, ImportError | AttributeError):
        return ""
    here = pathlib.Path.cwd()
    elsewhere = [path for path in sys.path if pathlib.Path(path).resolve() != here]
    for path in (*here.glob("*.py"), *(init.parent for init in here.glob("*/__init__.py"))):
        module = sys.modules.get(path.stem)
        file = pathlib.Path(getattr(module, "__file__", None) or "")
        if file in (path, path / "__init__.py") and importlib.machinery.PathFinder.find_spec(
            path.stem, elsewhere
        ):
            return f"; {path.name} in this directory hides an installed module, so rename it"
    return ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is unknown; empty if nothing known is like it."""
    found = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
