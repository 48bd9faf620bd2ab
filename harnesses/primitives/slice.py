"""Slices with static bounds."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, name, random
from harnesses.harness import Harness, harnesses


@harnesses
def slice_():
    for dtype in ALL:
        yield _slice((4, 5), (1, 0), (3, 5), None, dtype)
        yield _slice((4, 5), (1, 0), (4, 5), (2, 3), dtype)
    for shape, starts, limits, strides in [
        ((), (), (), None),
        ((5,), (0,), (5,), None),
        ((5,), (1,), (5,), None),
        ((5,), (0,), (2,), None),
        ((5,), (2,), (2,), None),
        ((5,), (5,), (5,), None),
        ((0,), (0,), (0,), None),
        ((5,), (0,), (5,), (1,)),
        ((5,), (0,), (5,), (2,)),
        ((5,), (0,), (5,), (5,)),
        ((5,), (1,), (4,), (7,)),
        ((5,), (2,), (2,), (3,)),
        ((0,), (0,), (0,), (2,)),
        ((4, 5), (1, 1), (2, 3), (1, 1)),
        ((4, 5), (0, 1), (4, 4), (1, 2)),
        ((4, 5), (0, 0), (4, 5), (3, 1)),
        ((4, 0), (1, 0), (3, 0), None),
        ((2, 3, 4), (0, 1, 0), (2, 2, 4), None),
        ((2, 3, 4), (1, 0, 1), (2, 3, 4), (1, 2, 3)),
        (
            (2, 2, 3, 2, 2, 2, 2, 3, 2, 2),
            (0, 0, 1) + (0,) * 4 + (1, 0, 1),
            (2, 2, 3) + (2,) * 4 + (3, 2, 2),
            None,
        ),
        (
            (2, 2, 3, 2, 2, 2, 2, 3, 2, 2),
            (0,) * 10,
            (2, 2, 3) + (2,) * 4 + (3, 2, 2),
            (1, 1, 2) + (1,) * 4 + (2, 1, 2),
        ),
    ]:
        yield _slice(shape, starts, limits, strides)


def _slice(shape, starts, limits, strides, dtype=np.float32):
    case = f"shape={shape}_start={starts}_limit={limits}_strides={strides}_{name(dtype)}"
    return Harness(
        "slice",
        case.replace(" ", ""),
        lambda x: lax.slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=strides),
        (random(shape, dtype),),
        params={"strides": strides},
    )
