"""Tells errors of a command from errors of the function that it names."""

import types
from collections.abc import Iterator

from lowering.errors import LoweringError
from lowering.passes import program

# The code that calls the user's function: an error in that has a frame of this.
_CALLS = frozenset(
    code
    for code in (program.trace.__code__, *program.trace.__code__.co_consts)
    if isinstance(code, types.CodeType)
)


def is_ours(error: BaseException) -> bool:
    """Whether an error says all that its reader needs."""
    return isinstance(error, LoweringError) or is_of_the_command(error)


def is_of_the_command(error: BaseException) -> bool:
    """Whether arguments or options are wrong: exporters say so before the function is called."""
    if isinstance(error, LoweringError) or not isinstance(error, TypeError | ValueError):
        return False
    return not any(code in _CALLS for code in _codes(error))


def _codes(error: BaseException | None) -> Iterator[types.CodeType]:
    """The code of each frame that an error, and those that led to it, came through."""
    while error is not None:
        frame = error.__traceback__
        while frame is not None:
            yield frame.tb_frame.f_code
            frame = frame.tb_next
        error = error.__cause__ or error.__context__
