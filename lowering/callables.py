"""What a user's function is called, where it is written, and where it fails."""

import functools
import inspect
import pathlib
import re
import sysconfig
import traceback
import types
from collections.abc import Callable
from typing import Any

_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)*")

# The directories of code that is not the user's: this package, Python, and what is installed.
_OF_OTHERS = (
    pathlib.Path(__file__).parent,
    *(pathlib.Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)


def name(fun: Any) -> str:
    """What messages call a function: its name, or the class of a callable object."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    return getattr(fun, "__name__", type(fun).__name__)


def expression(fun: Any) -> str:
    """What code in messages calls a function: its name, or `fun` if that is no expression for it.

    The name of a method lacks its object, that of a callable object is its class's, and that of a
    partial application is the name of the function without the arguments.
    """
    own = "" if isinstance(fun, types.MethodType) else getattr(fun, "__name__", "")
    return own if own.isidentifier() else "fun"


def is_class(fun: Any) -> bool:
    """Whether something is a class, other than dtypes and named tuples, which take arrays."""
    return isinstance(fun, type) and not hasattr(fun, "dtype") and not hasattr(fun, "_fields")


def signature(fun: Callable[..., Any]) -> inspect.Signature | None:
    """The parameters of a function; None for some builtins, which do not tell."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def positional(fun: Callable[..., Any]) -> list[str]:
    """The names of the parameters that may be given by their positions; none if it is not known."""
    own = signature(fun)
    found = () if own is None else own.parameters.values()
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [parameter.name for parameter in found if parameter.kind in kinds]


def standing_for(
    wrapper: Callable[..., Any], fun: Callable[..., Any], takes_its_arguments: bool = True
) -> Callable[..., Any]:
    """A wrapper that errors of JAX name as the user's function.

    JAX names a function with its file and line, and the parameter whose value was asked for.

    Args:
      wrapper: a new function that calls `fun`.
      fun: the user's function.
      takes_its_arguments: whether the wrapper has the parameters of `fun`.
    """
    wrapper.__name__ = name(fun)
    own = signature(fun if takes_its_arguments else wrapper)
    if own is not None:
        setattr(wrapper, "__signature__", own)  # noqa: B010
    setattr(wrapper, "__wrapped__", _written(fun))  # noqa: B010
    return wrapper


def source(fun: Callable[..., Any]) -> str:
    """Where a function begins, as `file:line (function)`; empty if it is in no file."""
    code = getattr(_written(fun), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno} ({name(fun)})"


def message(error: BaseException) -> str:
    """The message of an error, without the traceback that JAX puts into that of a callback.

    JAX has logged the traceback by then.
    """
    return _TRACEBACK.sub("", str(error))


def summary(error: BaseException) -> str:
    """The type of an error and its message, if it has one."""
    return ": ".join(filter(None, (type(error).__name__, message(error))))


def place(error: BaseException | None) -> str:
    """Where in the user's code an error was raised, to be put behind its message; or nothing.

    JAX differentiates a program that was traced before. The cause of what it raises then has the
    frames in which the program was traced.
    """
    while error is not None:
        found = ""
        for frame, line in traceback.walk_tb(error.__traceback__):
            file = pathlib.Path(frame.f_code.co_filename)
            if file.is_file() and not any(map(file.is_relative_to, _OF_OTHERS)):
                found = f" ({file.name}:{line}, in {frame.f_code.co_name})"
        if found:
            return found
        error = error.__cause__
    return ""


def _written(fun: Any) -> Any:
    """The function in a file that a partial, a method, a wrapper or a callable object runs."""
    seen: set[int] = set()
    while id(fun) not in seen:
        seen.add(id(fun))
        if isinstance(fun, functools.partial):
            fun = fun.func
        elif isinstance(fun, types.MethodType):
            fun = fun.__func__
        elif isinstance(fun, types.FunctionType):
            fun = fun.__dict__.get("__wrapped__", fun)
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            call = inspect.getattr_static(type(fun), "__call__", None)
            fun = call if isinstance(call, types.FunctionType) else fun
    return fun
