"""Slices with static bounds."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, name, random
from harnesses.axes import axes_of
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
    # Of the axes that are read to the end, those that are long enough whatever their size.
    to_end = [i for i, n in enumerate(shape) if limits[i] == n and starts[i] <= 1]

    def slice_(x):
        sizes = [x.shape[i] if i in to_end else limit for i, limit in enumerate(limits)]
        return lax.slice_p.bind(
            x, start_indices=starts, limit_indices=tuple(sizes), strides=strides
        )

    return Harness(
        "slice",
        case.replace(" ", ""),
        slice_,
        (random(shape, dtype),),
        params={"strides": strides},
        symbolic=axes_of(to_end),
    )
