"""Checks how many arguments a function takes, without JAX and TensorFlow."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lowering import callables


def check(fun: Callable[..., Any], args: Sequence[Any], has_params: bool) -> None:
    """Raises a TypeError if a function does not take so many arguments."""
    signature = callables.signature(fun)
    if signature is None:
        return
    try:
        signature.bind(*args)
    except TypeError as error:
        found = f"{len(args)} argument" + ("s" if len(args) != 1 else "")
        if has_params:
            found += ", params among them" if len(args) == 1 else ", the first of them params"
        raise TypeError(
            f"expected the arguments of {callables.name(fun)}{signature}; found {found}"
            f"{_instead(fun, signature, len(args), has_params)}"
        ) from error


def _instead(
    fun: Callable[..., Any], signature: inspect.Signature, count: int, has_params: bool
) -> str:
    """What to do about parameters that have no argument, at the end of a message."""
    without = [x for x in signature.parameters.values() if x.default is x.empty]
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    missing = [x.name for x in without if x.kind in places][count:]
    by_name = [x.name for x in without if x.kind is inspect.Parameter.KEYWORD_ONLY]
    advice = ""
    if missing and count:
        verb = "is" if len(missing) == 1 else "are"
        advice = f"; {' and '.join(map(repr, missing))} {verb} missing"
        if not has_params:
            advice += ", and params= gives a first argument that the model keeps"
    if by_name:
        fixed = ", ".join([callables.expression(fun), *(f"{name}=..." for name in by_name)])
        advice += f"; fix {' and '.join(map(repr, by_name))} by functools.partial({fixed})"
    return advice
