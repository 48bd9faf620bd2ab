"""The primitive clamp."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, FLOAT, is_complex, name, random, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from harnesses.primitives.binary import extremum


@harnesses
@symbolic(every_axis)
def clamp():
    for dtype in ALL:
        step = 29 if is_complex(dtype) else 3
        values = specials(dtype)[:: step if len(specials(dtype)) > 9 else 1]
        low, x, high = np.meshgrid(values, specials(dtype)[:: max(step // 3, 1)], values)
        yield Harness(
            "clamp", name(dtype), lax.clamp, (low.ravel(), x.ravel(), high.ravel()), extremum(dtype)
        )
        args = (random((), dtype, -1, 1), random((3, 4), dtype), random((), dtype, 1, 2))
        yield Harness("clamp", f"scalars_{name(dtype)}", lax.clamp, args)
    for dtype in FLOAT:
        zeros = np.array([0.0, -0.0], dtype)
        low, x, high = np.meshgrid(zeros, np.tile(zeros, 9), zeros)
        args = (low.ravel(), x.ravel(), high.ravel())
        yield Harness("clamp", f"zeros_{name(dtype)}", lax.clamp, args)
    limits = lambda x: lax.clamp(np.float32(-1), x, np.float32(0))  # noqa: E731
    yield Harness("clamp", "literals", limits, (specials(np.float32),), extremum(np.float32))
    args = tuple(random((0, 3), np.float32) for _ in range(3))
    yield Harness("clamp", "empty", lax.clamp, args)
