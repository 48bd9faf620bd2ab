"""Contractions of groups of different sizes (ragged dots)."""

import itertools

import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import name, random
from harnesses.axes import sizes_but
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses

_SIZES = np.array([[1, 2, 3], [0, 4, 1]], np.int32)

# The shapes of lhs and rhs, the contracted and batch axes of both, the ragged axis of lhs, the
# group axis of rhs and the sizes of the groups.
_CASES = {
    "rows": ((6, 4), (3, 4, 5), ((1,), (1,)), ((), ()), 0, (0,), np.array([2, 0, 4], np.int32)),
    "rest": ((6, 4), (3, 4, 5), ((1,), (1,)), ((), ()), 0, (0,), np.array([2, 0, 3], np.int32)),
    "none": ((6, 4), (3, 4, 5), ((1,), (1,)), ((), ()), 0, (0,), np.zeros(3, np.int32)),
    "int64": ((6, 4), (3, 4, 5), ((1,), (1,)), ((), ()), 0, (0,), np.array([2, 1, 3], np.int64)),
    "columns": ((4, 6), (5, 4, 3), ((0,), (1,)), ((), ()), 1, (2,), np.array([2, 1, 3], np.int32)),
    "batch of rows": ((2, 6, 4), (3, 2, 4, 5), ((2,), (2,)), ((0,), (1,)), 1, (0,), _SIZES),
    "outer rows": ((2, 6, 4), (3, 4, 5), ((2,), (1,)), ((), ()), 1, (0,), _SIZES),
    "shared sizes": ((2, 6, 4), (3, 2, 4, 5), ((2,), (2,)), ((0,), (1,)), 1, (0,), _SIZES[0]),
    "contracted": ((6, 4), (6, 5), ((0,), (0,)), ((), ()), 0, (), np.array([2, 0, 3], np.int32)),
    "batch contracted": ((2, 6, 4), (2, 6, 5), ((1,), (1,)), ((0,), (0,)), 1, (), _SIZES),
    "outer contracted": ((2, 6, 4), (6, 5, 2), ((0, 1), (2, 0)), ((), ()), 1, (), _SIZES),
    "batch": ((6, 2, 4), (6, 4, 5), ((2,), (1,)), ((0,), (0,)), 0, (), np.array([2, 4], np.int32)),
}


@harnesses
def ragged_dots():
    dtypes = (np.float32, np.int32, ml_dtypes.bfloat16, np.complex64)
    for (case, parts), dtype in itertools.product(_CASES.items(), dtypes):
        lhs, rhs, contract, batch, ragged, group, sizes = parts
        numbers = lax.RaggedDotDimensionNumbers((contract, batch), [ragged], list(group))
        yield Harness(
            "ragged_dot_general",
            f"{case}_{name(dtype)}",
            lambda x, y, sizes, numbers=numbers: lax.ragged_dot_general(x, y, sizes, numbers),
            (random(lhs, dtype, -2, 2), random(rhs, dtype, -2, 2), sizes),
            exact
            if dtype is np.int32
            else close(ulps=8, atol=64 * float(ml_dtypes.finfo(dtype).eps)),
            symbolic=_axes(sizes),
        )
    for dtype, preferred in ((np.int8, np.int32), (ml_dtypes.bfloat16, np.float32)):
        yield Harness(
            "ragged_dot_general",
            f"preferred={name(preferred)}_{name(dtype)}",
            lambda x, y, sizes, p=preferred: lax.ragged_dot(x, y, sizes, preferred_element_type=p),
            (random((6, 4), dtype), random((3, 4, 5), dtype), _SIZES[0]),
            close(ulps=8, atol=1e-4),
            symbolic=_axes(_SIZES[0]),
        )


def _axes(sizes):
    """The rule for the axes: all but the ragged one, whose size is 6, and that of the groups."""
    return sizes_but(6, sizes.shape[-1])
