"""Errors of converters, cropped to what matters."""

import pathlib
import re
import tempfile

_LINES = 12
_WIDTH = 240

# What begins the part of a converter's message that says what it lacks.
_CAUSES = (
    "Some ops are not supported by the native TFLite runtime",
    "Some ops in the model are custom ops",
)
# Lines that only say where something is.
_PLACES = re.compile(
    r'^\s*(File "|\^+$|~+|at .*(:\d+:\d+\)?$|https?://)|see current operation|loc\()'
)
_ROOT = pathlib.Path(__file__).parents[2]
_PATHS = re.compile(
    rf"(/[^\s:'\"]*/(site|dist)-packages/|{re.escape(str(_ROOT))}/"
    rf"|{re.escape(tempfile.gettempdir())}/[^\s:'\"]*/)"
)
_NOISE = re.compile(r" at 0x[0-9a-f]+|loc\(.*\): ")


def describe(error: BaseException) -> str:
    """The type and the cropped message of an error, or of the converter's error behind it."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {crop(str(cause))}"


def crop(message: str) -> str:
    """A message without places in sources and paths of the machine, and with few, short lines."""
    lines = [line.rstrip() for line in message.splitlines()]
    lines = [line for line in lines if line.strip() and not _PLACES.match(line)]
    causes = [i for i, line in enumerate(lines) if line.strip().startswith(_CAUSES)]
    lines = lines[causes[0] if causes else 0 :]
    kept = [_NOISE.sub("", _PATHS.sub("", line))[:_WIDTH] for line in lines[:_LINES]]
    if len(lines) > _LINES:
        kept.append(f"... ({len(lines) - _LINES} more lines)")
    return "\n".join(kept)
