"""Numbers among the arguments that a function needs as Python values, as in `train=True`.

JAX traces them as arrays, whose values nobody knows then: `if train` has no answer.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from lowering import callables

# What JAX says of a value that was asked for: the arguments that it depends on.
_BLAMED = re.compile(r"depends on the values? of the arguments? (.*)\.$", re.MULTILINE)


def advise(
    error: Exception, fun: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> None:
    """Adds to an error of JAX how to fix the value of an argument, if that is what is missing.

    Args:
      error: what was raised while JAX traced the function.
      fun: the user's function.
      args: its positional arguments.
      kwargs: its keyword arguments.
    """
    found, signature = _BLAMED.search(str(error)), callables.signature(fun)
    if found is None or signature is None:
        return
    blamed = re.split(r",? and |, ", found[1])
    name = callables.expression(fun)
    for parameter, given in signature.bind(*args, **kwargs).arguments.items():
        for path, value in jax.tree_util.tree_leaves_with_path(given):
            leaf = parameter + jax.tree_util.keystr(path)
            if leaf in blamed and isinstance(value, bool | int | float | complex):
                fixed = f"{parameter}={'...' if path else repr(value)}"
                advice = (
                    f"{leaf} is {value!r} in Python, and an array while JAX traces. To fix its "
                    f"value, take functools.partial({name}, {fixed}) in place of {name}, and do "
                    "not give it as an argument."
                )
                error.args = (f"{error}\n{advice}", *error.args[1:])
                return
