"""Symbolic dimensions as TensorFlow values.

A dimension is a Python int where JAX knows it, and an expression over dimension variables where
it does not. The values of the variables are int32 scalars taken from the shapes of the arguments.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.ops import memo, modes
from lowering.ops.constants import constant, vector
from lowering.ops.emission import emit

Size: TypeAlias = int | tf.Tensor


def _operation(op: str, compute: Callable[[int, int], int]) -> Callable[[Size, Size], Size]:
    """An operation on sizes: of ints an int, else an op, which a runtime may lack."""

    def apply(x: Size, y: Size) -> Size:
        if isinstance(x, int) and isinstance(y, int):
            return compute(x, y)
        return emit(op, *(z if isinstance(z, tf.Tensor) else constant(z, tf.int32) for z in (x, y)))

    return apply


# What expressions over dimension variables are made of.
OPERATIONS: Mapping[str, Callable[[Size, Size], Size]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": _operation("FloorDiv", operator.floordiv),
    "mod": _operation("FloorMod", operator.mod),
    "max": _operation("Maximum", max),
    "min": _operation("Minimum", min),
}


class Dimensions:
    """The values of dimension variables, and of expressions over them."""

    def __init__(self, variables: Mapping[str, tf.Tensor]):
        """`variables` maps the name of each dimension variable to an int32 scalar."""
        self.variables = dict(variables)

    def size(self, dim: Any) -> Size:
        """The size of a dimension: an int where it is known, else an int32 scalar."""
        if isinstance(dim, int | np.integer):
            return int(dim)
        if modes.is_eager():
            return self._evaluate(dim)
        # Once per graph: what is computed inside a loop or branch does not exist outside of it.
        return memo.once(("size", id(self), dim), lambda: self._evaluate(dim), self)

    def shape(self, dims: Sequence[Any]) -> tf.Tensor:
        """The sizes of dimensions as one int32 vector."""
        return vector([self.size(dim) for dim in dims])

    def _evaluate(self, dim: Any) -> tf.Tensor:
        return jax_compat.evaluate_dim(dim, self.variables, OPERATIONS)
