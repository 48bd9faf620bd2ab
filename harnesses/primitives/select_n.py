"""Elementwise selection among several operands."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, name, random, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def select_n():
    for dtype in ALL:
        cases = (random((3, 4), dtype), random((3, 4), dtype))
        yield Harness("select_n", name(dtype), lax.select_n, (random((3, 4), np.bool_), *cases))
        args = (random((), np.bool_), specials(dtype), specials(dtype)[::-1].copy())
        yield Harness("select_n", f"scalar_{name(dtype)}", lax.select_n, args)
    for count in (1, 2, 3, 4, 7):
        for shape in [(), (2, 5)]:
            which = random(shape, np.int32, 0, count - 1)
            cases = tuple(random((2, 5), np.float32) for _ in range(count))
            case = f"cases={count}_which={shape}"
            yield Harness("select_n", case, lax.select_n, (which, *cases), dtype=np.float32)
    args = random((0, 2), np.bool_), random((0, 2), np.float32), random((0, 2), np.float32)
    yield Harness("select_n", "empty", lax.select_n, args, dtype=np.float32)
