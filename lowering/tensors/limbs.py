"""Products of matrices of int32 by products of float32, where a runtime has no others.

Integers are split into limbs of few bits, whose sums of products are exact in float32. Larger
products are left out: they are multiples of 2^32. Limbs have signs, so that those of small numbers
are zero but for the lowest: products of such numbers are exact where integers have 24 bits, too.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from lowering.ops import cast, constant, emit

_BITS = 32
# Up to two to the power of this, all integers are numbers of float32.
_EXACT = 24
# The bits of limbs where the number of terms is not known; for as many as 65536.
_FEWEST = 4


def product(
    x: tf.Tensor,
    y: tf.Tensor,
    matmul: Callable[[tf.Tensor, tf.Tensor], tf.Tensor],
    terms: int | None,
) -> tf.Tensor:
    """The product of two matrices of int32, modulo 2^32.

    Args:
      x, y: the matrices, or batches of them.
      matmul: their product in float32.
      terms: how many products each element is a sum of; None if it is not known.
    """
    width = _width(terms)
    count = -(-_BITS // width)
    of_x, of_y = _limbs(x, width, count), _limbs(y, width, count)
    total = None
    for place in range(count):
        for i in range(place + 1):
            part = cast(matmul(of_x[i], of_y[place - i]), tf.int32)
            if place:
                part = emit("Mul", part, constant(np.int32(1) << np.int32(place * width)))
            total = part if total is None else emit("AddV2", total, part)
    return total


def _width(terms: int | None) -> int:
    """The bits of limbs: as many as leave sums of so many products exact."""
    if terms is None:
        return _FEWEST
    return max(_FEWEST, (_EXACT - (max(terms, 1) - 1).bit_length()) // 2 + 1)


def _limbs(x: tf.Tensor, width: int, count: int) -> list[tf.Tensor]:
    """The limbs of integers, from the lowest one, as float32: at most half of 2^width."""
    size, half = (constant(number, np.int32) for number in (1 << width, 1 << (width - 1)))
    found = []
    for _ in range(count - 1):
        limb, x = emit("FloorMod", x, size), emit("FloorDiv", x, size)
        carry = cast(emit("GreaterEqual", limb, half), tf.int32)
        found.append(cast(emit("Sub", limb, emit("Mul", carry, size)), tf.float32))
        x = emit("AddV2", x, carry)
    return [*found, cast(x, tf.float32)]
