"""Reductions with one associative operation."""

import functools

import numpy as np
from jax import lax

from harnesses.arguments import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    NUMBER,
    full_range,
    is_complex,
    is_float,
    name,
    pairs,
    random,
)
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import DERIVATIVES, Harness, harnesses

_AXES = [(0,), (1, 2)]


def _sum_comparer(dtype, count, largest):
    """Returns a comparer of sums; it allows any order of summation.

    JAX rounds its partial sums to `dtype`, and in another order the partial sums are different.

    Args:
      dtype: the dtype of the sum.
      count: how many numbers are added.
      largest: the largest absolute value of the numbers.
    """
    if not (is_float(dtype) or is_complex(dtype)):
        return exact
    return close(ulps=4, atol=float(np.sqrt(count) * largest * _eps(dtype)))


def _eps(dtype):
    kind = np.dtype(dtype)
    return {"float16": 2**-10, "bfloat16": 2**-7, "float32": 2**-23, "complex64": 2**-23}.get(
        kind.name, 2**-52
    )


@harnesses
@symbolic(every_axis)
def sum_and_prod():
    for dtype in NUMBER:
        for axes in _AXES:
            case = f"axes={axes}_{name(dtype)}"
            x = full_range((3, 4, 5), dtype) if dtype in INTEGER else random((3, 4, 5), dtype)
            fun = functools.partial(lax.reduce_sum, axes=axes)
            yield Harness("reduce_sum", case, fun, (x,), _sum_comparer(dtype, 60, 4))
            x = (
                full_range((3, 4, 5), dtype)
                if dtype in INTEGER
                else random((3, 4, 5), dtype, 0.5, 1.6)
            )
            fun = functools.partial(lax.reduce_prod, axes=axes)
            # The product with each of up to 60 factors may round once.
            yield Harness("reduce_prod", case, fun, (x,), close(ulps=30))
    for primitive, fun in {"reduce_sum": lax.reduce_sum, "reduce_prod": lax.reduce_prod}.items():
        for dtype in INEXACT:
            # Infinities of both signs, NaN and overflow. Complex values are finite: the parts of
            # products of complex infinities depend on the order of the factors.
            x, y = pairs(dtype)
            if is_complex(dtype):
                x = x[np.isfinite(x)][::7] / 2
                y = np.full_like(x, 0.5)
            yield Harness(
                primitive,
                f"specials_{name(dtype)}",
                functools.partial(fun, axes=(1,)),
                (np.stack([x, y], 1),),
                close(ulps=2, atol=_tiny(dtype)),
                symbolic=("n, _" if is_complex(dtype) else "n, m",),
            )
        yield from _shapes(primitive, fun)
    for dtype in FLOAT:
        for shape, axes in (((1000,), (0,)), ((70, 33), (0,)), ((33, 70), (1,))):
            yield Harness(
                "reduce_sum",
                f"shape={shape}_axes={axes}_{name(dtype)}",
                functools.partial(lax.reduce_sum, axes=axes),
                (random(shape, dtype),),
                _sum_comparer(dtype, 1000, 16),
            )


def _tiny(dtype):
    """Returns the least normal number: implementations may flush smaller results to zero."""
    return {"float16": 2**-14, "float64": 2**-1022, "complex128": 2**-1022}.get(
        np.dtype(dtype).name, 2**-126
    )


def _shapes(primitive, fun, dtypes=(np.float32,)):
    for dtype in dtypes:
        for shape, axes in [
            ((), ()),
            ((2, 3), ()),
            ((0, 3), (0,)),
            ((3, 0, 2), (0, 2)),
            ((1, 3, 2), (0, 2)),
        ]:
            yield Harness(
                primitive,
                f"shape={shape}_axes={axes}_{name(dtype)}",
                functools.partial(fun, axes=axes),
                (random(shape, dtype, 1, 3),),
                close(ulps=4),
            )


def _derivatives_but_of_nan(axes):
    """Returns a comparer of derivatives that leaves out extrema that are NaN.

    JAX divides 0 by 0 there, and then multiplies by zeros, which XLA makes a selection of.
    """

    def compare(expected, actual, args):
        x = args[0]
        is_nan = np.isnan(x).any(axes, keepdims=expected[0].ndim == x.ndim)
        actual = [np.where(is_nan, e, a) for e, a in zip(expected, actual, strict=True)]
        return DERIVATIVES(expected, actual, args)

    return compare


def _with_nans(shape, dtype):
    """Returns a maker of random numbers, some replaced by NaN, infinities and zeros."""

    def make(rng):
        x = random(shape, dtype)(rng).reshape(-1)
        places = rng.permutation(x.size)
        x[places[: x.size // 12]] = np.nan
        x[places[x.size // 12 : x.size // 4]] = np.array([0, -0.0, np.inf, -np.inf])[
            rng.integers(0, 4, x.size // 4 - x.size // 12)
        ].astype(dtype)
        return x.reshape(shape)

    return make


# For zeros of both signs the sign of JAX's own result depends on the shape.
_EITHER_ZERO = close(ulps=0)


@harnesses
@symbolic(every_axis)
def max_and_min():
    for primitive, fun in {"reduce_max": lax.reduce_max, "reduce_min": lax.reduce_min}.items():
        for dtype in ALL:
            x = full_range((3, 4, 5), dtype) if dtype in INTEGER else random((3, 4, 5), dtype)
            axes = (0, 2) if np.dtype(dtype).itemsize < 4 else (1,)
            yield Harness(
                primitive, f"axes={axes}_{name(dtype)}", functools.partial(fun, axes=axes), (x,)
            )
            if dtype not in COMPLEX:
                # Whether subnormals of bfloat16 are flushed to zero depends on the version of JAX.
                comparer = close(ulps=0, atol=_tiny(dtype)) if dtype in FLOAT else exact
                yield Harness(
                    primitive,
                    f"specials_{name(dtype)}",
                    functools.partial(fun, axes=(1,)),
                    (np.stack(pairs(dtype), 1),),
                    comparer,
                    derivatives=_derivatives_but_of_nan((1,)),
                )
            yield Harness(
                primitive,
                f"empty_{name(dtype)}",
                functools.partial(fun, axes=(0,)),
                (np.zeros((0, 2), dtype),),
            )
        for dtype in FLOAT:
            # Long enough for TensorFlow's kernels to use vector instructions.
            for shape, axes in (((40, 37), (0,)), ((37, 40), (1,)), ((7, 40, 9), (1,))):
                yield Harness(
                    primitive,
                    f"nan_shape={shape}_axes={axes}_{name(dtype)}",
                    functools.partial(fun, axes=axes),
                    (_with_nans(shape, dtype),),
                    _EITHER_ZERO,
                    derivatives=_derivatives_but_of_nan(axes),
                )
        # Complex numbers with equal real parts are compared by their imaginary parts.
        for dtype in COMPLEX:
            ties = np.array([[1 + 2j, 1 + 3j, 1 - 5j], [2 - 1j, -3j, 2 - 2j]], dtype)
            yield Harness(
                primitive, f"ties_{name(dtype)}", functools.partial(fun, axes=(1,)), (ties,)
            )
        yield from _shapes(primitive, fun)


@harnesses
@symbolic(every_axis)
def bitwise():
    for primitive, fun in {
        "reduce_and": lax.reduce_and,
        "reduce_or": lax.reduce_or,
        "reduce_xor": lax.reduce_xor,
    }.items():
        for dtype in BOOL + INTEGER:
            x = random((3, 4, 5), dtype) if dtype in BOOL else full_range((3, 4, 5), dtype)
            axes = (0, 2) if dtype in (np.bool_, np.int32) else (1,)
            yield Harness(
                primitive,
                f"axes={axes}_{name(dtype)}",
                functools.partial(fun, axes=axes),
                (x,),
            )
        yield from _shapes(primitive, fun, (np.int32,))
        for size in (1, 2, 7, 33):
            yield Harness(
                primitive,
                f"size={size}",
                functools.partial(fun, axes=(0,)),
                (full_range((size,), np.uint32),),
            )
