"""Constant folding: an equation on known values is run once, at lowering time, by its own rule.

PRNG keys, masks and tables thus reach the graph as constants. TensorFlow runs the rule eagerly: a
kernel takes microseconds where JAX would compile each equation for tens of milliseconds.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering.ops import dims, dtypes

# Larger results cost more as constants in the graph than they save.
BUDGET_BYTES = 1 << 18

# Primitives that may run forever, that call back into Python, or whose value is only known when
# the program runs, though they have no operands.
_NEVER = frozenset(
    {"while", "pure_callback", "io_callback", "debug_callback", "ffi_call", "dim_as_value"}
)


def called_jaxprs(eqn: jex_core.JaxprEqn) -> Iterator[Any]:
    """The jaxprs among the parameters of an equation."""
    pending = list(eqn.params.values())
    while pending:
        value = pending.pop(0)
        if isinstance(value, jex_core.ClosedJaxpr | jex_core.Jaxpr):
            yield value
        elif isinstance(value, tuple | list):
            pending.extend(value)


def _nbytes(aval: Any) -> int:
    itemsize = 16 if dtypes.is_key(aval.dtype) else dtypes.to_tf(aval.dtype).size
    return itemsize * int(np.prod(aval.shape))


def is_foldable(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation may be evaluated at lowering time if its operands are known."""
    if eqn.primitive.name in _NEVER or eqn.effects:
        return False
    avals = [var.aval for var in (*eqn.invars, *eqn.outvars)]
    if not all(hasattr(aval, "dtype") and dims.is_static(aval.shape) for aval in avals):
        return False
    if sum(_nbytes(var.aval) for var in eqn.outvars) > BUDGET_BYTES:
        return False
    return all(is_foldable(inner) for called in called_jaxprs(eqn) for inner in called.eqns)


def _array(result: Any) -> np.ndarray:
    # NumPy cannot make an array of a tensor of a single bfloat16.
    return np.asarray(result.numpy() if isinstance(result, tf.Tensor) else result)


def _broadcast(x: np.ndarray, *, shape: Any, broadcast_dimensions: Any, **_: Any) -> np.ndarray:
    """A view of `x`, so that it can be told that its elements are repeated."""
    expanded = [1] * len(shape)
    for size, axis in zip(x.shape, broadcast_dimensions, strict=True):
        expanded[axis] = size
    return np.broadcast_to(x.reshape(expanded), shape)


class Folder:
    """Evaluates equations whose operands are known, remembering the results.

    Equations, literals and operands are told apart by identity and kept, so that it stays theirs.
    """

    def __init__(self):
        self._results: dict[Any, tuple[Any, list[np.ndarray]]] = {}
        self._literals: dict[int, tuple[jex_core.Literal, np.ndarray]] = {}

    def literal(self, literal: jex_core.Literal) -> np.ndarray:
        """The value of a literal as an array of its dtype."""
        if id(literal) not in self._literals:
            value = literal.val
            if not dtypes.is_key(literal.aval.dtype):
                value = np.asarray(value, literal.aval.dtype)
            self._literals[id(literal)] = (literal, value)
        return self._literals[id(literal)][1]

    def fold(
        self,
        eqn: jex_core.JaxprEqn,
        operands: Sequence[Any],
        run: Callable[[], Sequence[Any]],
    ) -> list[np.ndarray] | None:
        """The results of an equation on known operands, or None if it must stay in the program.

        Args:
          eqn: the equation.
          operands: its operands, all known.
          run: runs its rule on them.
        """
        key = (id(eqn), *(id(operand) for operand in operands))
        if key not in self._results:
            if not is_foldable(eqn):
                return None
            with tf.init_scope():
                if not tf.executing_eagerly():  # Inside of a graph of TensorFlow 1.
                    return None
                is_broadcast = eqn.primitive.name == "broadcast_in_dim"
                if is_broadcast and isinstance(operands[0], np.ndarray):
                    results = [_broadcast(operands[0], **eqn.params)]
                else:
                    results = [_array(result) for result in run()]
            self._results[key] = ((eqn, list(operands)), results)
        return self._results[key][1]
