"""What the value of a variable is while a program is lowered.

It is one of
* a tensor;
* a `Broadcastable`: a tensor in place of its broadcast;
* known: a NumPy array, or a JAX array of PRNG keys.

TensorFlow's elementwise ops broadcast their operands as NumPy does. So a broadcast operand of an
elementwise primitive needs no tensor of its own, and neither does the result of elementwise
primitives on operands that are all broadcast: the work is done once per distinct element.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

import jax
import numpy as np
import tensorflow as tf

from lowering.avals import is_key
from lowering.ops import dtypes
from lowering.ops.constants import constant

_SMALL_BYTES = 256
# Ops whose results have the elements of their first operand in the same order.
_RESHAPES = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


@dataclasses.dataclass(eq=False)
class Broadcastable:
    """A tensor in place of its broadcast to the shape of an abstract value.

    Attributes:
      tensor: a tensor that can be broadcast to the shape.
      broadcast: broadcasts it.
    """

    tensor: tf.Tensor
    broadcast: Callable[[tf.Tensor], tf.Tensor]
    _full: tf.Tensor | None = None

    def full(self) -> tf.Tensor:
        """The broadcast tensor; made once."""
        if self._full is None:
            self._full = self.broadcast(self.tensor)
        return self._full


Value: TypeAlias = tf.Tensor | Broadcastable | np.ndarray | jax.Array


def is_known(value: Value) -> TypeGuard[np.ndarray | jax.Array]:
    """Whether a value is known at lowering time."""
    return not isinstance(value, tf.Tensor | Broadcastable)


def full(value: Value) -> tf.Tensor | np.ndarray | jax.Array:
    """A value that is not left to be broadcast."""
    return value.full() if isinstance(value, Broadcastable) else value


def smallest(value: Value) -> Value:
    """What a value is broadcast from, if it is broadcast: all that an elementwise op needs."""
    if isinstance(value, Broadcastable):
        return value.tensor
    return _distinct(value) if isinstance(value, np.ndarray) else value


def known_again(value: Value) -> Value:
    """A small constant of a graph as the array that it was made of; any other value as it is.

    A known number that is broadcast to a symbolic shape is such a constant.
    """
    if is_known(value) or not tf.is_symbolic_tensor(value):
        return value
    made: Any = value
    if made.op.type != "Const" or made.shape.num_elements() * made.dtype.size > _SMALL_BYTES:
        return value
    return np.asarray(tf.get_static_value(made))


def tensor(value: Value, dtype: Any = None) -> tf.Tensor:
    """A value as a tensor: keys and narrow numbers in storage dtypes, float0 as False.

    Args:
      value: any value.
      dtype: its JAX dtype; for a known value that of the array if None.
    """
    value = full(value)
    if not is_known(value):
        return value
    if dtype is None:
        return constant(value)
    if dtype == dtypes.FLOAT0:
        return constant(np.zeros(value.shape, np.bool_))
    return constant(in_storage(value, dtype), dtypes.to_tf(dtype))


def in_storage(value: Value, dtype: Any) -> Value:
    """A known value in its storage dtype: keys as key data, narrow numbers in a wider dtype.

    Args:
      value: a value. If it is not known it is returned as it is.
      dtype: its JAX dtype, or None.
    """
    if not is_known(value):
        return value
    if is_key(dtype):
        return value if isinstance(value, np.ndarray) else np.asarray(jax.random.key_data(value))
    return np.asarray(value, dtypes.storage(dtype)) if dtypes.is_narrow(dtype) else value


def source(tensor: tf.Tensor) -> Any:
    """The op of a graph that made a tensor, whatever its name; None if it is eager."""
    if not tf.is_symbolic_tensor(tensor):
        return None
    made: Any = tensor
    while made.op.type == "Identity":
        made = made.op.inputs[0]
    return made.op


def operand_of(tensor: tf.Tensor | None, kind: str) -> tf.Tensor | None:
    """The first operand of the op that made a tensor of a graph; None if it is of another type."""
    made = None if tensor is None else source(tensor)
    return made.inputs[0] if made is not None and made.type == kind else None


def unshaped(tensor: tf.Tensor) -> tf.Tensor:
    """The tensor that reshapes of a graph made another of; the tensor itself if there are none."""
    made: Any = tensor
    while tf.is_symbolic_tensor(made) and made.op.type in _RESHAPES:
        made = made.op.inputs[0]
    return made


def is_small(value: Value) -> bool:
    """Whether a value is known and small enough to be part of a function that it is given to."""
    return isinstance(value, np.ndarray) and value.nbytes <= _SMALL_BYTES


def is_partial(tensor: tf.Tensor, shape: list[int | None]) -> bool:
    """Whether a tensor is smaller than the static shape that it stands for."""
    have = tensor.shape.as_list()
    return len(have) < len(shape) or any(h == 1 != s for h, s in zip(have, shape, strict=True))


def fingerprint(value: Value) -> Any:
    """A known value as a hashable object."""
    dtype = getattr(value, "dtype", None)
    array = np.asarray(in_storage(value, dtype))
    return (str(dtype), array.shape, array.tobytes())


def _distinct(x: np.ndarray) -> np.ndarray:
    """An array without the repeated elements of a broadcast; it can be broadcast to `x` again."""
    once = x[(..., *(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides))]
    return once.reshape(()) if once.size == 1 else once
