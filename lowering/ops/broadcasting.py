"""Broadcasting that is left to the ops.

TensorFlow's elementwise ops broadcast their operands as NumPy does. So a broadcast operand of an
elementwise primitive needs no tensor of its own, and neither does the result of elementwise
primitives on operands that are all broadcast: the work is done once per distinct element.
"""

import dataclasses
from collections.abc import Callable

import numpy as np
import tensorflow as tf

# Primitives whose rules emit only ops that broadcast, and look at no shape.
ELEMENTWISE = frozenset(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh cbrt ceil complex conj
    convert_element_type copy cos cosh div eq erf erf_inv erfc exp exp2 expm1 floor ge gt imag
    is_finite le log log1p logistic lt max min mul ne neg not or pow real rem round rsqrt
    select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square
    stop_gradient sub tan tanh threefry2x32 xor
    """.split()
)

# Primitives whose results may be left to be broadcast.
LAZY = ELEMENTWISE | {"broadcast_in_dim", "iota_2x32_shape", "reshape"}


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


def takes_partial(primitive: str, position: int) -> bool:
    """Whether the rule of a primitive takes an operand that is left to be broadcast."""
    return primitive in ELEMENTWISE or (primitive == "batch_norm" and position > 0)


def distinct(x: np.ndarray) -> np.ndarray:
    """An array without the repeated elements of a broadcast; it can be broadcast to `x` again."""
    once = x[(..., *(slice(0, 1) if stride == 0 else slice(None) for stride in x.strides))]
    return once.reshape(()) if once.size == 1 else once


def is_partial(tensor: tf.Tensor, shape: list[int | None]) -> bool:
    """Whether a tensor is smaller than the static shape that it stands for."""
    have = tensor.shape.as_list()
    return len(have) < len(shape) or any(h == 1 != s for h, s in zip(have, shape, strict=True))
