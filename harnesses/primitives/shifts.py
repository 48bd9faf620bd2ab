"""Bit shifts, also by negative amounts and by the bit width or more."""

import numpy as np
from jax import lax

from harnesses.arguments import INTEGER, name, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from harnesses.primitives.binary import broadcast_binary, with_known


@harnesses
@symbolic(every_axis)
def shifts():
    for primitive in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        fun = getattr(lax, primitive)
        for dtype in INTEGER:
            bits = np.iinfo(dtype).bits
            amounts = np.concatenate(
                [specials(dtype), np.array([1, bits // 2, bits - 1, bits, bits + 1], dtype)]
            )
            x, amount = np.meshgrid(specials(dtype), amounts)
            yield Harness(primitive, name(dtype), fun, (x.ravel(), amount.ravel()))
            known = (0, 3, bits, *([-1] if np.iinfo(dtype).min else []))
            by_known = with_known(fun, [np.array(shift, dtype) for shift in known])
            yield Harness(primitive, f"known_{name(dtype)}", by_known, (specials(dtype),))
        yield from broadcast_binary(primitive, fun, np.int32)
