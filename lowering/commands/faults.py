"""Whose fault an error is: that of the command, or of the function that it names."""

import pathlib
import sysconfig
import traceback
import types
from collections.abc import Iterator

from lowering.errors import LoweringError
from lowering.passes import program

# The code that calls the user's function, of which no frame is without it.
_CALLS = frozenset(
    code
    for code in (program.trace.__code__, *program.trace.__code__.co_consts)
    if isinstance(code, types.CodeType)
)

# The directories of code that is not the user's: this package, Python, and what is installed.
_OF_OTHERS = (
    pathlib.Path(__file__).parents[1],
    *(pathlib.Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)


def is_ours(error: BaseException) -> bool:
    """Whether an error says all that its reader needs."""
    return isinstance(error, LoweringError) or is_of_the_command(error)


def is_of_the_command(error: BaseException) -> bool:
    """Whether arguments or options are wrong: exporters say so before the function is called."""
    if isinstance(error, LoweringError) or not isinstance(error, TypeError | ValueError):
        return False
    return not any(code in _CALLS for code in _codes(error))


def place(error: BaseException) -> str:
    """Where in the user's code an error was raised, to be put behind its message; or nothing."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        file = pathlib.Path(frame.f_code.co_filename)
        if file.is_file() and not any(map(file.is_relative_to, _OF_OTHERS)):
            found = f" ({file.name}:{line}, in {frame.f_code.co_name})"
    return found


def _codes(error: BaseException | None) -> Iterator[types.CodeType]:
    """The code of each frame that an error, and those that led to it, came through."""
    while error is not None:
        frame = error.__traceback__
        while frame is not None:
            yield frame.tb_frame.f_code
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
