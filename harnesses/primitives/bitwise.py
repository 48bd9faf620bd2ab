"""Bitwise and logical primitives."""

import numpy as np
from jax import lax

from harnesses.arguments import BOOL, INTEGER, full_range, name, pairs, random, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from harnesses.primitives.binary import broadcast_binary


@harnesses
@symbolic(every_axis)
def bitwise():
    operations = {"and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor}
    for primitive, fun in operations.items():
        for dtype in BOOL + INTEGER:
            yield Harness(primitive, name(dtype), fun, pairs(dtype))
        yield from broadcast_binary(primitive, fun, np.int32)


@harnesses
@symbolic(every_axis)
def bits():
    for dtype in BOOL + INTEGER:
        yield Harness("not", name(dtype), lax.bitwise_not, (specials(dtype),))
    for dtype in INTEGER:
        for primitive, fun in {"population_count": lax.population_count, "clz": lax.clz}.items():
            powers = np.array([1], dtype) << np.arange(np.iinfo(dtype).bits).astype(dtype)
            values = np.concatenate([specials(dtype), powers, powers - 1])
            yield Harness(primitive, name(dtype), fun, (values,))
            yield Harness(primitive, f"random_{name(dtype)}", fun, (full_range((2, 16), dtype),))
    for primitive, fun in {"population_count": lax.population_count, "clz": lax.clz}.items():
        for shape in [(), (0, 2)]:
            yield Harness(primitive, f"shape={shape}", fun, (random(shape, np.int32),))
