"""Checks the functions and arguments that an exporter is given, and names them."""

import functools
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import callables
from lowering.avals import is_key
from lowering.export import signatures
from lowering.frontend import refused


def check_flags(**flags: Any) -> None:
    """Raises a TypeError for an option that is neither True nor False: "no" would be true."""
    for name, flag in flags.items():
        if not isinstance(flag, bool | np.bool_):
            raise TypeError(f"{name} is True or False, not {flag!r}")


def check_count(name: str, count: Any, least: int = 1) -> None:
    """Raises an error for what is no whole number: a TypeError; or too small: a ValueError."""
    if not isinstance(count, int | np.integer) or isinstance(count, bool):
        raise TypeError(f"{name} is a whole number, not {count!r}")
    if count < least:
        raise ValueError(f"{name} is at least {least}, not {count}")


def check_leaf(what: str, leaf: Any, fun: Any = None, name: str = "", where: str = "") -> None:
    """Raises a TypeError for a leaf that is no array of numbers.

    Args:
      what: the argument of the exporter that it is in.
      leaf: the leaf.
      fun: the function that the leaf is an argument of.
      name: the name of the leaf among the arguments of the function.
      where: the keys of the leaf in the argument of the exporter, as Python writes them.
    """
    is_array = hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, type)
    if refused.is_refused(leaf) or not is_array:
        taken = "arrays"
        if what == "args":
            taken = (
                "arrays and jax.ShapeDtypeStruct, such as jax.ShapeDtypeStruct((1, 3), 'float32')"
            )
        instead = refused.instead(leaf)
        if name and isinstance(leaf, bool | int | float | complex | str):
            parameter, _, keys = name.partition("/")
            fixed = f"{callables.expression(fun)}, {parameter}={'...' if keys else repr(leaf)}"
            is_number = not isinstance(leaf, bool | str)
            made = "give np.asarray(...) of it or of its list, or " if is_number else ""
            instead = f"; {made}to fix its value, export functools.partial({fixed})"
        place = f" at {what}{where}" if where else ""
        raise TypeError(f"{what} takes {taken}, not {leaf!r}{place}{instead}")
    if isinstance(leaf.dtype, tf.DType):
        is_spec = isinstance(leaf, tf.TensorSpec)
        instead = "a jax.ShapeDtypeStruct of its shape and dtype" if is_spec else "its numpy()"
        raise TypeError(f"{what}{where} has TensorFlow's {type(leaf).__name__}; give {instead}")
    if isinstance(leaf.dtype, np.dtype) and not _is_of_jax(leaf.dtype):
        native = leaf.dtype.newbyteorder("=")
        is_swapped = native != leaf.dtype and _is_of_jax(native)
        instead = f"; its bytes are in another order, give its astype({native.name!r})"
        raise TypeError(
            f"{what}{where} has the dtype {leaf.dtype}, which is none of JAX"
            f"{instead if is_swapped else ''}"
        )
    if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended) and not is_key(leaf.dtype):
        raise TypeError(f"{what} has {leaf.dtype}, which no runtime but JAX knows")


@functools.cache
def _is_of_jax(dtype: np.dtype) -> bool:
    try:
        jax.typeof(np.zeros((), dtype))
    except TypeError:
        return False
    return True


def named(
    what: str, given: Sequence[str] | None, default: Sequence[str], taken: Sequence[str] = ()
) -> list[str]:
    """The names of inputs or outputs, all different; default names avoid those `taken`.

    Raises:
      ValueError: if there are too many or too few, or some are no names, or are the same.
    """
    if given is None:
        names = [re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x" for name in default]
        return signatures.unique([*taken, *names])[len(taken) :]
    if isinstance(given, str):
        raise ValueError(f"{what} is a sequence of names, not the string {given!r}")
    if not isinstance(given, Sequence):
        raise ValueError(f"{what} is a sequence of names, not {given!r}")
    if len(given) != len(default):
        raise ValueError(
            f"{what} has {len(given)} name{'s' if len(given) != 1 else ''} for {len(default)} "
            f"array{'s' if len(default) != 1 else ''}: {', '.join(default)}"
        )
    for name in given:
        if not isinstance(name, str) or not signatures.NAME.fullmatch(name):
            raise ValueError(
                f"{what} has {name!r}; a name has letters, digits and underscores, and does not "
                "begin with an underscore"
            )
    for name in given:
        if given.count(name) > 1:
            raise ValueError(f"{what} has {name!r} twice")
    if signatures.unique(given) != list(given):
        raise ValueError(f"{what} has names that differ in nothing but their case: {list(given)}")
    return list(given)


def sizes(x: Any, for_consumer: bool) -> list[int | str]:
    """The shape of an input or output, with expressions for symbolic sizes."""
    found = [size if isinstance(size, int) else str(size) for size in x.shape]
    is_pair = for_consumer and jax.dtypes.issubdtype(x.dtype, jax.numpy.complexfloating)
    return [*found, 2] if is_pair else found
