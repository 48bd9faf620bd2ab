"""Symbolic dimensions as TensorFlow values.

A dimension is a Python int where JAX knows it, and an expression over dimension variables where
it does not. The values of the variables are int32 scalars taken from the shapes of the arguments.
"""

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.ops.constants import constant, integers

Size = int | tf.Tensor

_OPERATIONS = {
    "add": lambda x, y: x + y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: x // y,
    "mod": lambda x, y: x % y,
    "max": lambda x, y: tf.maximum(x, y),
    "min": lambda x, y: tf.minimum(x, y),
}


class Dimensions:
    """The values of dimension variables, and of expressions over them."""

    def __init__(self, variables: Mapping[str, tf.Tensor]):
        """`variables` maps the name of each dimension variable to an int32 scalar."""
        self.variables = dict(variables)
        self._values: weakref.WeakKeyDictionary[Any, dict[Any, tf.Tensor]] = (
            weakref.WeakKeyDictionary()
        )

    def size(self, dim: Any) -> Size:
        """The size of a dimension: an int where it is known, else an int32 scalar."""
        if isinstance(dim, int | np.integer):
            return int(dim)
        if tf.executing_eagerly():
            return jax_compat.evaluate_dim(dim, self.variables, _OPERATIONS)
        # A value computed inside a loop or branch does not exist outside of it.
        values = self._values.setdefault(tf.compat.v1.get_default_graph(), {})
        if dim not in values:
            values[dim] = jax_compat.evaluate_dim(dim, self.variables, _OPERATIONS)
        return values[dim]

    def shape(self, dims: Sequence[Any]) -> tf.Tensor:
        """The sizes of dimensions as one int32 vector."""
        sizes = [self.size(dim) for dim in dims]
        if all(isinstance(size, int) for size in sizes):
            return integers(sizes)
        return tf.stack([constant(s, tf.int32) if isinstance(s, int) else s for s in sizes])


def static_shape(dims: Sequence[Any]) -> list[int | None]:
    """The dimensions as TensorFlow's static shape, with None for symbolic ones."""
    return [dim if isinstance(dim, int) else None for dim in dims]


def is_static(dims: Sequence[Any]) -> bool:
    """Whether all dimensions are known."""
    return all(isinstance(dim, int) for dim in dims)


def is_at_most(dim: Any, limit: int) -> bool:
    """Whether a size is known not to exceed a limit."""
    try:
        return bool(dim <= limit)
    except jax.errors.InconclusiveDimensionOperation:
        return False
