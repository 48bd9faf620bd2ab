"""Special functions."""

import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import FLOAT, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, close_to_largest
from harnesses.harness import Harness, harnesses
from harnesses.primitives.unary import normal_and_random, tiny


def _grid(dtype, *axes):
    """Returns all combinations of the values of several axes, as vectors."""
    return tuple(x.ravel().astype(dtype) for x in np.meshgrid(*axes))


UNARY = {
    "erf": (lax.erf, -4, 4),
    "erfc": (lax.erfc, -4, 10),
    "erf_inv": (lax.erf_inv, -1.01, 1.01),
    "lgamma": (lax.lgamma, -10, 100),
    "digamma": (lax.digamma, -10, 100),
    "bessel_i0e": (lax.bessel_i0e, -20, 20),
    "bessel_i1e": (lax.bessel_i1e, -20, 20),
}


def _values(primitive, dtype, low, high):
    def make(rng):
        x = normal_and_random(dtype, low, high)(rng)
        # digamma(0), a pole, is NaN in some versions of JAX and infinite in others.
        return x[x != 0] if primitive == "digamma" else x

    return make


def comparer_of(primitive, dtype):
    """Returns the comparer of a special function of one operand."""
    eps = float(ml_dtypes.finfo(dtype).eps)
    if primitive in ("lgamma", "digamma"):
        # Near the zeros of the function, terms of magnitude about 1 cancel.
        return close(ulps=16, atol=32 * eps)
    # JAX loses bits of the logarithm in erf_inv, and of the square in the tail of erfc.
    return close(ulps={"erf_inv": 32, "erfc": 64}.get(primitive, 8), atol=2 * tiny(dtype))


@harnesses
@symbolic(every_axis)
def unary():
    for primitive, (fun, low, high) in UNARY.items():
        for dtype in FLOAT:
            values = _values(primitive, dtype, low, high)
            yield Harness(primitive, name(dtype), fun, (values,), comparer_of(primitive, dtype))
        for shape in [(), (0, 3), (2, 1, 3)]:
            values = random(shape, np.float32, 0.1, 0.9)
            comparer = comparer_of(primitive, np.float32)
            yield Harness(primitive, f"shape={shape}", fun, (values,), comparer)


_SHAPES = [0.0, 0.01, 0.5, 1.0, 1.5, 3.0, 10.0, 40.0, 250.0, -1.0, np.inf, -np.inf, np.nan]
_POINTS = [0.0, 0.01, 0.3, 1.0, 2.5, 9.0, 11.0, 45.0, 260.0, -0.5, np.inf, -np.inf, np.nan]


def _loose(expected, actual, args):
    """Compares results of functions computed as exp of a difference of large logarithms.

    In float32 and float64 JAX itself loses a dozen bits of small results, such as
    igamma(250, 9) = 1e-258, and of one minus such a result.
    """
    eps = float(ml_dtypes.finfo(expected[0].dtype).eps)
    comparer = close() if eps > 1e-4 else close(rtol=8192 * eps, atol=32 * eps)
    return comparer(expected, actual, args)


# They are such exponentials themselves.
_DERIVATIVES = close_to_largest(ulps=4096)


@harnesses
@symbolic(every_axis)
def incomplete_gamma():
    for primitive in ("igamma", "igammac", "igamma_grad_a"):
        fun = getattr(lax, primitive)
        for dtype in FLOAT:
            args = _grid(dtype, _SHAPES, _POINTS)
            yield Harness(primitive, name(dtype), fun, args, _loose, derivatives=_DERIVATIVES)


@harnesses
@symbolic(every_axis)
def incomplete_beta():
    points = [0.0, 0.01, 0.3, 0.5, 0.9, 1.0, -0.1, 1.1, np.nan]
    for dtype in FLOAT:
        args = _grid(dtype, _SHAPES, _SHAPES, points)
        yield Harness(
            "regularized_incomplete_beta",
            name(dtype),
            lax.betainc,
            args,
            _loose,
            derivatives=_DERIVATIVES,
        )


@harnesses
@symbolic(every_axis)
def zeta():
    exponents = [1.0, 1.1, 2.0, 3.5, 10.0, 40.0, 0.5, 0.0, -1.0, -2.0, np.inf, -np.inf, np.nan]
    points = [0.1, 0.5, 1.0, 2.0, 7.3, 100.0, 0.0, -0.5, -1.0, -3.0, -2.7, np.inf, -np.inf, np.nan]
    for dtype in FLOAT:
        yield Harness("zeta", name(dtype), lax.zeta, _grid(dtype, exponents, points), _loose)
        orders = [0.0, 1.0, 2.0, 3.0, 5.0, 10.0, -1.0, 0.5, np.inf, -np.inf, np.nan]
        # Without the pole of digamma at zero, as in `_values`.
        order, x = _grid(dtype, orders, points)
        args = order[(order != 0) | (x != 0)], x[(order != 0) | (x != 0)]
        yield Harness("polygamma", name(dtype), lax.polygamma, args, _loose)
