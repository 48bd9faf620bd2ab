"""Cumulative reductions along one axis."""

import functools

import numpy as np
from jax import lax

from harnesses.arguments import (
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    full_range,
    name,
    random,
)
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses

_DIRECTIONS = [(0, False), (1, True), (2, False)]


def _comparer(dtype):
    if dtype in INTEGER:
        return exact
    # JAX combines the elements in a tree, and rounds each partial result to the dtype.
    return close(ulps=8, atol=8 * float(np.finfo(np.float32).eps) if dtype in COMPLEX else 0)


@harnesses
@symbolic(every_axis)
def cumulative():
    for primitive, fun, low in (
        ("cumsum", lax.cumsum, 0.5),
        ("cumprod", lax.cumprod, 0.5),
        ("cummax", lax.cummax, -4),
        ("cummin", lax.cummin, -4),
        ("cumlogsumexp", lax.cumlogsumexp, -4),
    ):
        for dtype in INEXACT if primitive == "cumlogsumexp" else NUMBER:
            comparer = exact if primitive in ("cummax", "cummin") else _comparer(dtype)
            # All of _DIRECTIONS for dtypes of four bytes, only one of them for the others.
            itemsize = np.dtype(dtype).itemsize
            start, stop = (0, 3) if itemsize == 4 else (0, 1) if itemsize < 4 else (1, 2)
            for axis, reverse in _DIRECTIONS[start:stop]:
                x = random((3, 7, 2), dtype, low, low + 2)
                if dtype in INTEGER:
                    x = full_range((3, 7, 2), dtype)
                yield Harness(
                    primitive,
                    f"axis={axis}_reverse={reverse}_{name(dtype)}",
                    functools.partial(fun, axis=axis, reverse=reverse),
                    (x,),
                    comparer,
                )
        for shape, axis in (((0,), 0), ((3, 1), 1), ((33,), 0), ((2, 70), 1), ((1030,), 0)):
            for reverse in (False, True):
                yield Harness(
                    primitive,
                    f"shape={shape}_reverse={reverse}",
                    functools.partial(fun, axis=axis, reverse=reverse),
                    (random(shape, np.float32, 0.9, 1.1),),
                    close(ulps=64),
                )
        for dtype in FLOAT:
            reverse = np.dtype(dtype).itemsize == 4
            yield Harness(
                primitive,
                f"specials_reverse={reverse}_{name(dtype)}",
                functools.partial(fun, axis=1, reverse=reverse),
                (_infinite(dtype),),
                close(ulps=8),
            )
    for primitive, fun in {"cummax": lax.cummax, "cummin": lax.cummin}.items():
        for size in (40, 1030):
            yield Harness(
                primitive,
                f"integers_size={size}",
                functools.partial(fun, axis=0, reverse=size == 40),
                (full_range((size,), np.int16),),
            )


def _infinite(dtype):
    """Returns rows with infinities of one or both signs, NaN and zeros at several positions."""
    inf, nan = np.inf, np.nan
    return np.array(
        [
            [0, -1, inf, 1, 2, 0],
            [1, -inf, 3, 0, -2, 4],
            [-inf, -inf, -inf, 1, -inf, 2],
            [inf, 1, inf, 2, inf, 1],
            [1, 2, nan, 3, -inf, 4],
            [1, inf, 3, -inf, 2, 1],
            [-0.0, 0, -0.0, 1, -0.0, 2],
            [nan, nan, nan, nan, nan, nan],
        ],
        dtype,
    )
