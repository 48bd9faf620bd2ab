"""Updates of a block of an array whose start is an operand."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, INTEGER, name, random
from harnesses.axes import axes, every_axis
from harnesses.harness import DERIVATIVES, Harness, harnesses


@harnesses
def dynamic_update_slice():
    for dtype in ALL:
        yield _update((4, 5), (2, 3), (1, 2), dtype)
    for index_dtype in INTEGER:
        info = np.iinfo(index_dtype)
        starts = (2, 200, info.max, info.min, info.max - 1)
        # The size fits the index dtype. If it did not, XLA's upper bound of the start would wrap
        # around in some programs and not in others.
        size = 100 if info.bits == 8 else 300
        yield Harness(
            "dynamic_update_slice",
            f"starts_{name(index_dtype)}",
            lambda x, update, *starts: [
                lax.dynamic_update_slice_p.bind(x, update, start) for start in starts
            ],
            (
                random((size,), np.float32),
                random((7,), np.float32),
                *(np.array(min(start, info.max), index_dtype) for start in starts),
            ),
            # XLA takes a large unsigned start that it knows, as it does here, for a negative one.
            derivatives=DERIVATIVES if info.min else None,
        )
    for shape, sizes, starts in [
        ((), (), ()),
        ((5,), (5,), (0,)),
        ((5,), (5,), (3,)),
        ((5,), (2,), (0,)),
        ((5,), (2,), (-1,)),
        ((5,), (2,), (9,)),
        ((5,), (0,), (2,)),
        ((0,), (0,), (2,)),
        ((4, 5), (1, 1), (2, 1)),
        ((4, 5), (2, 2), (3, 4)),
        ((4, 5), (2, 2), (-3, -4)),
        ((4, 5), (4, 2), (1, 3)),
        ((4, 5), (2, 5), (1, 3)),
        ((4, 5), (0, 5), (1, 3)),
        ((4, 0), (2, 0), (1, 3)),
        ((2, 3, 4), (1, 2, 3), (1, 1, 1)),
        ((2, 3, 4), (2, 1, 4), (0, 2, 0)),
        ((2, 3, 4), (1, 3, 4), (1, 2, 0)),
        ((2, 1) * 5, (1, 1) * 5, (1, 0) * 5),
    ]:
        yield _update(shape, sizes, starts)
        yield _constant_start(shape, sizes, starts)
    yield Harness(
        "dynamic_update_slice",
        "loop",
        lambda x, row: lax.fori_loop(
            0,
            6,
            lambda i, x: lax.dynamic_update_slice(x, row + i.astype(x.dtype), (i, 1)),
            x,
        ),
        (random((5, 3), np.float32), random((1, 2), np.float32)),
        symbolic=axes(0),
    )
    yield Harness(
        "dynamic_update_slice",
        "operand_used_again",
        lambda x, row, i: (lax.dynamic_update_slice(x, row, (i, np.int32(0))), x),
        (random((5, 3), np.float32), random((1, 3), np.float32), np.int32(2)),
        symbolic=every_axis,
    )
    yield Harness(
        "dynamic_update_slice",
        "known_operand",
        lambda row, i: lax.dynamic_update_slice(
            np.zeros((5, 3), np.float32), row, (i, np.int32(0))
        ),
        (random((1, 3), np.float32), np.int32(2)),
    )


def _axes(shape, sizes):
    """The rule for the axes of which an update has all elements, or at most one."""
    return axes(*(i for i, n in enumerate(sizes) if n in (0, 1, shape[i])))


def _update(shape, sizes, starts, dtype=np.float32, index_dtype=np.int32):
    case = f"shape={shape}_sizes={sizes}_starts={starts}_{name(dtype)}_{name(index_dtype)}"
    return Harness(
        "dynamic_update_slice",
        case.replace(" ", ""),
        lambda x, update, *starts: lax.dynamic_update_slice_p.bind(x, update, *starts),
        (
            random(shape, dtype),
            random(sizes, dtype),
            *(np.array(start, index_dtype) for start in starts),
        ),
        params={"index_dtype": name(index_dtype)},
        symbolic=_axes(shape, sizes),
    )


def _constant_start(shape, sizes, starts):
    return Harness(
        "dynamic_update_slice",
        f"constant_shape={shape}_sizes={sizes}_starts={starts}".replace(" ", ""),
        lambda x, update: lax.dynamic_update_slice_p.bind(x, update, *map(np.int32, starts)),
        (random(shape, np.float32), random(sizes, np.float32)),
        symbolic=_axes(shape, sizes),
    )
