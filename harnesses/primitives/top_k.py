"""The k largest (or smallest) elements along an axis."""

import inspect
import math

import jax
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import BOOL, FLOAT, INTEGER, full_range, name, random, specials
from harnesses.axes import axes, axes_but, every_axis, symbolic
from harnesses.compare import Comparison, close, exact
from harnesses.harness import Harness, harnesses

_REAL = BOOL + INTEGER + FLOAT


def _top_k(k, **kwargs):
    return lambda x: lax.top_k(x, k, **kwargs)


def _in_order_of_float32(expected, actual, args):
    """Compares with JAX's result for the same numbers in float32.

    JAX's own order of bfloat16 depends on the CPU: where one instruction converts to it (AVX-512
    BF16), comparisons of subnormals flush them to zero.
    """
    values, positions = lax.top_k(args[0].astype(np.float32), expected[0].shape[-1])
    return exact([np.asarray(values).astype(expected[0].dtype), positions], actual, args)


@harnesses
@symbolic(axes_but(-1))
def top_k():
    for dtype in _REAL:
        x = full_range((3, 20), dtype) if dtype in INTEGER else random((3, 20), dtype)
        yield Harness("top_k", name(dtype), _top_k(4), (x,))
        yield Harness("top_k", f"ties_{name(dtype)}", _top_k(30), (random((40,), dtype, 0, 3),))
        values = specials(dtype)
        if dtype in FLOAT:
            values = np.concatenate([values, -values])
        x = np.tile(values, 2)
        if dtype == ml_dtypes.bfloat16:
            yield Harness(
                "top_k",
                "subnormals_bfloat16",
                _top_k(x.size),
                (x,),
                _in_order_of_float32,
                derivatives=None,
                symbolic=axes(),
            )
            x = x[~(abs(x) < ml_dtypes.finfo(dtype).tiny) | (x == 0)]
        yield Harness("top_k", f"specials_{name(dtype)}", _top_k(x.size), (x,), symbolic=axes())
    for shape, k in (((5,), 0), ((5,), 5), ((0, 3), 2), ((0,), 0), ((2, 3, 7), 2), ((3000,), 7)):
        yield Harness("top_k", f"shape={shape}_k={k}", _top_k(k), (random(shape, np.float32),))
    for axis in (0, 1, -2):
        yield Harness(
            "top_k",
            f"axis={axis}",
            _top_k(3, axis=axis),
            (random((4, 5, 6), np.float32),),
            symbolic=axes_but(axis),
        )
    if "is_stable" in inspect.signature(lax.top_k).parameters:
        x = random((2, 30), np.float32)
        yield Harness("top_k", "unstable", _top_k(5, is_stable=False), (x,))


def _same_selection(axis):
    """Returns a comparer that accepts equal values from other positions.

    JAX's sort in approx_top_k is not stable, and treats subnormals and zeros as equal.
    """

    def compare(expected, actual, args):
        values, positions = actual
        subnormal = float(ml_dtypes.finfo(values.dtype).tiny)
        comparison = close(ulps=0, atol=subnormal)(expected[:1], [values], args)
        if not comparison.equal:
            return comparison
        taken = np.take_along_axis(args[0], positions, axis)
        distinct = np.diff(np.sort(positions, axis), axis=axis).all()
        if not distinct:
            return Comparison(False, np.inf, "positions are not distinct")
        return exact([values], [taken], args)

    return compare


def _distinct(shape, dtype):
    """Returns a maker of distinct numbers, among which the positions of a selection are unique."""

    def make(rng):
        size = math.prod(shape)
        return rng.permutation(np.arange(size) - size // 2).reshape(shape).astype(dtype)

    return make


@harnesses
@symbolic(axes_but(-1))
def approx_top_k():
    for fun in (lax.approx_max_k, lax.approx_min_k):
        for dtype in FLOAT:
            case = f"{fun.__name__}_{name(dtype)}"
            yield Harness(
                "approx_top_k",
                case,
                lambda x, fun=fun: fun(x, 5),
                (_distinct((3, 40), dtype),),
                _same_selection(1),
            )
            values = specials(dtype)
            if jax.__version_info__ < (0, 11):
                # In these versions NaN makes the comparison inconsistent and the order arbitrary.
                values = values[~np.isnan(values)]
            yield Harness(
                "approx_top_k",
                f"specials_{case}",
                lambda x, fun=fun: fun(x, x.size),
                (np.tile(values, 2),),
                _same_selection(0),
                derivatives=None,
                symbolic=every_axis,
            )
        for shape, axis, k in (((40, 3), 0, 4), ((2, 50, 2), 1, 50), ((2, 50, 2), -2, 3)):
            yield Harness(
                "approx_top_k",
                f"{fun.__name__}_shape={shape}_axis={axis}",
                lambda x, fun=fun, axis=axis, k=k: fun(x, k, reduction_dimension=axis),
                (random(shape, np.float32),),
                _same_selection(axis),
                symbolic=axes_but(axis),
            )
        yield Harness(
            "approx_top_k",
            f"{fun.__name__}_not_aggregated",
            lambda x, fun=fun: fun(x, 2, aggregate_to_topk=False, recall_target=0.5),
            (random((3, 300), np.float32),),
            _same_selection(1),
        )
