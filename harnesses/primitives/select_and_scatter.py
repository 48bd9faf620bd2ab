"""Primitives that select one element of each window, used in the derivatives of pooling."""

import itertools

import jax
import jax.extend.core.primitives as primitives
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import name, random, whole
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import Harness, harnesses
from lowering.ops.dtypes import LOW_PRECISION

_FLOAT = (*LOW_PRECISION, np.float32, np.float64)

# Shape, window, strides and padding. There is no scalar: XLA in JAX aborts the process for it.
_WINDOWS = (
    ((1, 6, 7, 2), (1, 3, 2, 1), (1, 2, 2, 1), "SAME"),
    ((2, 6, 6, 2), (1, 3, 3, 1), (1, 2, 2, 1), "VALID"),
    ((5, 6), (2, 3), (1, 1), ((0, 0), (2, 2))),
    ((5, 6), (2, 2), (2, 2), ((1, 0), (0, 3))),
    ((8,), (2,), (3,), "VALID"),
    ((8,), (3,), (1,), ((2, 2),)),
    ((3, 4, 3), (2, 2, 2), (1, 1, 1), "SAME"),
    ((1,), (1,), (1,), "VALID"),
    ((0, 4), (1, 2), (1, 1), "VALID"),
)


def _with_nonfinite(shape, dtype):
    def make(rng):
        x = whole(shape, dtype)(rng)
        x.ravel()[::7], x.ravel()[3::5], x.ravel()[4::9] = np.nan, -np.inf, np.inf
        return x

    return make


def _pool(reducer, size, strides, padding, base=None, window=None):
    infinity = -np.inf if reducer is lax.max else np.inf

    def pool(x):
        init = np.array(infinity, x.dtype)
        return lax.reduce_window(x, init, reducer, size, strides, padding, base, window)

    return pool


def _comparer(dtype):
    # In low precision JAX rounds after each term, and the sum of an element has a few terms.
    return close(ulps=32 if dtype in LOW_PRECISION else 4)


def _kept(size, strides, padding):
    """The rule for the axes that have the same size after pooling, whatever it is."""
    sizes = enumerate(zip(size, strides, strict=True))
    return axes(*(i for i, (n, stride) in sizes if stride == 1 and (n == 1 or padding == "SAME")))


@harnesses
def gradients():
    """Yields harnesses of `select_and_scatter_add`, which reverse mode binds."""
    for reducer, (shape, *window), dtype in itertools.product(
        (lax.max, lax.min), _WINDOWS, (np.float32, ml_dtypes.bfloat16)
    ):
        pool = _pool(reducer, *window)
        out = jax.eval_shape(pool, jax.ShapeDtypeStruct(shape, dtype)).shape
        for make_values in (whole, _with_nonfinite):
            yield Harness(
                "select_and_scatter_add",
                f"{reducer.__name__}_{shape}_{window}_{make_values.__name__.lstrip('_')}_{name(dtype)}",
                lambda x, y, pool=pool: jax.vjp(pool, x)[1](y)[0],
                (make_values(shape, dtype), whole(out, dtype)),
                _comparer(dtype),
                symbolic=_kept(*window),
            )
    for dtype in _FLOAT:
        pool = _pool(lax.max, (3, 3), (2, 2), "SAME")
        yield Harness(
            "select_and_scatter_add",
            f"random_{name(dtype)}",
            lambda x, y, pool=pool: jax.vjp(pool, x)[1](y)[0],
            (random((7, 8), dtype), random((4, 4), dtype)),
            close(ulps=8, atol=16 * float(ml_dtypes.finfo(dtype).eps)),
        )
    pool = _pool(lax.max, (3, 2), (1, 1), "SAME", (2, 3))
    yield Harness(
        "select_and_scatter_add",
        "base_dilation",
        lambda x, y, pool=pool: jax.vjp(pool, x)[1](y)[0],
        (random((3, 4), np.float32), random((5, 10), np.float32)),
        close(ulps=8, atol=1e-5),
    )


@harnesses
@symbolic(every_axis)
def tangents():
    """Yields harnesses of `select_and_gather_add`, which forward mode binds."""
    for reducer, (shape, *window), dtype in itertools.product(
        (lax.max, lax.min), _WINDOWS, (np.float32, ml_dtypes.bfloat16)
    ):
        pool = _pool(reducer, *window)
        for make_values in (whole, _with_nonfinite):
            yield Harness(
                "select_and_gather_add",
                f"{reducer.__name__}_{shape}_{window}_{make_values.__name__.lstrip('_')}_{name(dtype)}",
                lambda x, y, pool=pool: jax.jvp(pool, (x,), (y,))[1],
                (make_values(shape, dtype), random(shape, dtype)),
                # Which of equal elements is taken depends on the loops that XLA makes of the sizes.
                symbolic=axes(*(i for i, n in enumerate(window[0]) if n == 1)),
            )
    for dtype in _FLOAT:
        yield Harness(
            "select_and_gather_add",
            f"dilated_{name(dtype)}",
            lambda x, y: jax.jvp(
                _pool(lax.max, (2, 3), (1, 2), ((1, 1), (2, 0)), (1, 2), (2, 1)), (x,), (y,)
            )[1],
            (random((5, 6), dtype), random((5, 6), dtype)),
        )


def _select_and_scatter(select, scatter, size, strides, padding):
    """Returns a function that binds the primitive; JAX has no public function for it."""

    def closed_jaxpr(fun, dtype):
        scalar = jax.ShapeDtypeStruct((), dtype)
        return jax.make_jaxpr(fun)(scalar, scalar)

    def call(operand, source, init):
        select_jaxpr, scatter_jaxpr = (closed_jaxpr(f, operand.dtype) for f in (select, scatter))
        return primitives.select_and_scatter_p.bind(
            operand,
            source,
            init,
            select_jaxpr=select_jaxpr.jaxpr,
            select_consts=(),
            scatter_jaxpr=scatter_jaxpr.jaxpr,
            scatter_consts=(),
            window_dimensions=size,
            window_strides=strides,
            padding=padding,
        )

    return call


@harnesses
def any_functions():
    def horner(x, y):
        return x * np.array(2, x.dtype) + y

    for shape, size, strides, padding in (
        ((1, 6, 7, 2), (1, 3, 2, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (0, 1), (0, 0))),
        ((5, 6), (2, 3), (1, 1), ((0, 0), (2, 2))),
        ((5, 6), (2, 3), (2, 1), ((0, 0), (0, 0))),
        ((8,), (2,), (3,), ((0, 0),)),
        ((8,), (3,), (1,), ((2, 2),)),
        ((4,), (2,), (1,), ((4, 0),)),
    ):
        for dtype in (np.float32, np.int32, np.uint8):
            out = [
                (dim + low + high - width) // stride + 1
                for dim, width, stride, (low, high) in zip(
                    shape, size, strides, padding, strict=True
                )
            ]
            for select, scatter in ((lax.ge, lax.add), (lax.lt, horner), (lax.le, lax.max)):
                yield Harness(
                    "select_and_scatter",
                    f"{select.__name__}_{scatter.__name__}_{shape}_{size}_{strides}_{padding}"
                    f"_{name(dtype)}",
                    _select_and_scatter(select, scatter, size, strides, padding),
                    (_small(shape, dtype), _small(out, dtype), np.array(2, dtype)),
                    symbolic=_kept(size, strides, padding),
                )


def _small(shape, dtype):
    return lambda rng: rng.integers(0, 4, shape).astype(dtype)
