"""Primitives that make an array without an operand."""

import functools

import jax
import numpy as np
from jax import lax

from harnesses.arguments import ALL, COMPLEX, FLOAT, INTEGER, name
from harnesses.harness import Harness, harnesses
from lowering import jax_compat


@harnesses
def iota():
    for dtype in (*INTEGER, *FLOAT, *COMPLEX):
        yield _iota((2, 3, 4), 1, dtype)
        # Values that narrow dtypes cannot hold, and an array too large to be folded to a constant.
        yield _iota((300, 1000), 1, dtype)
        if np.dtype(dtype).itemsize == 2:
            yield _iota((70000, 5), 0, dtype)
    for shape, dimension in [((0,), 0), ((1,), 0), ((2, 3), 0), ((2, 3), 1), ((0, 3), 1)]:
        yield _iota(shape, dimension)


def _iota(shape, dimension, dtype=np.float32):
    return Harness(
        "iota",
        f"shape={shape}_dimension={dimension}_{name(dtype)}".replace(" ", ""),
        lambda: lax.broadcasted_iota(dtype, shape, dimension),
        dtype=dtype,
    )


@harnesses
def iota_2x32_shape():
    bind = jax_compat.cpu_primitive("iota_2x32_shape").bind
    for shape in [(3,), (0, 2), (300, 2, 5)]:
        case = f"shape={shape}".replace(" ", "")
        yield Harness("iota_2x32_shape", case, functools.partial(bind, shape=shape))


@harnesses
def empty():
    bind = jax_compat.cpu_primitive("empty2").bind
    space = jax.memory.Space.Device
    empty2 = functools.partial(bind, dtype=np.dtype(np.float32), memory_space=space)
    yield Harness("empty2", "float32", empty2)
    for dtype in ALL:
        yield _empty((2, 3), dtype)
    for shape in [(), (0, 3), (300, 1000)]:
        yield _empty(shape, np.float32)


def _empty(shape, dtype):
    return Harness(
        "empty",
        f"shape={shape}_{name(dtype)}".replace(" ", ""),
        lambda: lax.empty(shape, dtype),
        dtype=dtype,
    )
