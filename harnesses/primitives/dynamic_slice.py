"""Slices whose start is an operand."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import ALL, INTEGER, name, random
from harnesses.axes import axes_of, every_axis
from harnesses.harness import DERIVATIVES, Harness, harnesses


@harnesses
def dynamic_slice():
    for dtype in ALL:
        yield _dynamic_slice((4, 5), (1, 2), (2, 3), dtype)
    for index_dtype in INTEGER:
        info = np.iinfo(index_dtype)
        starts = (2, 200, info.max, info.min, info.max - 1)
        yield Harness(
            "dynamic_slice",
            f"starts_{name(index_dtype)}",
            lambda x, *starts: [
                lax.dynamic_slice_p.bind(x, start, slice_sizes=(7,)) for start in starts
            ],
            (
                random((300,), np.float32),
                *(np.array(min(start, info.max), index_dtype) for start in starts),
            ),
            # XLA takes a large unsigned start that it knows, as it does here, for a negative one.
            derivatives=DERIVATIVES if info.min else None,
        )
    for shape, starts, sizes in [
        ((), (), ()),
        ((5,), (0,), (5,)),
        ((5,), (3,), (5,)),
        ((5,), (0,), (2,)),
        ((5,), (-1,), (2,)),
        ((5,), (-9,), (2,)),
        ((5,), (4,), (2,)),
        ((5,), (9,), (1,)),
        ((5,), (2,), (0,)),
        ((0,), (2,), (0,)),
        ((4, 5), (2, 1), (1, 1)),
        ((4, 5), (3, 4), (2, 2)),
        ((4, 5), (-3, -4), (2, 2)),
        ((4, 5), (1, 3), (4, 2)),
        ((4, 5), (1, 3), (2, 5)),
        ((4, 5), (1, 3), (0, 5)),
        ((4, 0), (1, 3), (2, 0)),
        ((2, 3, 4), (1, 1, 1), (1, 2, 3)),
        ((2, 3, 4), (0, 2, 0), (2, 1, 4)),
        ((2, 1) * 5, (1, 0) * 5, (1, 1) * 5),
    ]:
        yield _dynamic_slice(shape, starts, sizes)
        yield _constant_start(shape, starts, sizes)
    yield Harness(
        "dynamic_slice",
        "some_starts_known",
        lambda x, i: lax.dynamic_slice(x, (np.int32(1), i, np.int32(9)), (1, 2, 2)),
        (random((2, 4, 5), np.float32), np.int32(2)),
        symbolic=axes_of((0,)),
    )
    yield Harness(
        "dynamic_slice",
        "loop",
        lambda x: lax.fori_loop(
            0, 6, lambda i, y: y + lax.dynamic_slice(x, (i, 0), (2, 3)), jnp.zeros((2, 3), x.dtype)
        ),
        (random((6, 3), np.int32),),
    )
    yield Harness(
        "dynamic_slice",
        "scan_over_rows",
        lambda x: lax.map(lambda i: lax.dynamic_index_in_dim(x, i, 1, False), jnp.arange(5)),
        (random((3, 5, 2), np.float32),),
        symbolic=every_axis,
    )


def _axes(shape, sizes):
    """The rule for the axes of which a slice has all elements, or at most one."""
    return axes_of([i for i, n in enumerate(sizes) if n in (0, 1, shape[i])])


def _bind(x, starts, shape, sizes):
    sizes = [x.shape[i] if n == shape[i] else n for i, n in enumerate(sizes)]
    return lax.dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(sizes))


def _dynamic_slice(shape, starts, sizes, dtype=np.float32, index_dtype=np.int32):
    case = f"shape={shape}_starts={starts}_sizes={sizes}_{name(dtype)}_{name(index_dtype)}"
    return Harness(
        "dynamic_slice",
        case.replace(" ", ""),
        lambda x, *starts: _bind(x, starts, shape, sizes),
        (random(shape, dtype), *(np.array(start, index_dtype) for start in starts)),
        params={"index_dtype": name(index_dtype)},
        symbolic=_axes(shape, sizes),
    )


def _constant_start(shape, starts, sizes):
    return Harness(
        "dynamic_slice",
        f"constant_shape={shape}_starts={starts}_sizes={sizes}".replace(" ", ""),
        lambda x: _bind(x, map(np.int32, starts), shape, sizes),
        (random(shape, np.float32),),
        symbolic=_axes(shape, sizes),
    )
