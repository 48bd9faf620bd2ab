"""Reductions over windows."""

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import (
    ALL,
    COMPLEX,
    INTEGER,
    NUMBER,
    full_range,
    name,
    random,
    specials,
    whole,
)
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import DERIVATIVES, Harness, harnesses
from lowering.ops.dtypes import LOW_PRECISION


def _neutral(reducer, dtype):
    """Returns the neutral init, for which `lax.reduce_window` binds a primitive of the reducer."""
    if reducer is lax.add:
        return np.array(0, dtype)
    is_max = reducer is lax.max
    if dtype == np.bool_:
        return np.array(not is_max)
    if dtype in INTEGER:
        info = np.iinfo(dtype)
        return np.array(info.min if is_max else info.max, dtype)
    return np.array(-np.inf if is_max else np.inf, dtype)


_PRIMITIVES = {
    lax.add: "reduce_window_sum",
    lax.max: "reduce_window_max",
    lax.min: "reduce_window_min",
}


def _comparer(reducer, dtype, terms):
    if reducer is not lax.add or not jnp.issubdtype(dtype, np.inexact):
        return exact
    # JAX rounds sums of low precision after each term.
    ulps = terms if dtype in LOW_PRECISION else 4
    return close(ulps=ulps, atol=4 * terms * float(ml_dtypes.finfo(dtype).eps))


def _harness(reducer, case, x, dtype, size, strides=None, padding="VALID", base=None, window=None):
    strides = strides or (1,) * len(size)
    init = _neutral(reducer, dtype)
    # XLA aborts the process when it compiles the derivative of an extremum of a scalar.
    has_derivatives = bool(size) or reducer is lax.add
    return Harness(
        _PRIMITIVES[reducer],
        f"{case}_{name(dtype)}",
        lambda x: lax.reduce_window(x, init, reducer, size, strides, padding, base, window),
        (x,),
        _comparer(reducer, dtype, int(np.prod(size))),
        dtype=dtype,
        derivatives=DERIVATIVES if has_derivatives else None,
    )


@harnesses
@symbolic(every_axis)
def rectified():
    """Yields harnesses of max-pooling after abs or relu; some windows are only padding."""
    for dtype in (*LOW_PRECISION, np.float32, np.float64):
        x = np.array([0, -0.0, 1, -1, np.nan, -np.nan, np.inf, -np.inf, 3, -2, 0.5, 7], dtype)
        for fun in (jnp.abs, lambda x: lax.max(x, x.dtype.type(0))):
            yield Harness(
                "reduce_window_max",
                f"after_{'abs' if fun is jnp.abs else 'relu'}_{name(dtype)}",
                lambda x, fun=fun: lax.reduce_window(
                    fun(x), x.dtype.type(-np.inf), lax.max, (2, 2), (2, 1), ((4, 0), (1, 3))
                ),
                (x.reshape(3, 4),),
            )


@harnesses
@symbolic(every_axis)
def dtypes():
    for reducer in _PRIMITIVES:
        for dtype in NUMBER if reducer is lax.add else ALL:
            x = random((2, 7, 8, 3), dtype)
            yield _harness(reducer, "pooling", x, dtype, (1, 3, 2, 1), (1, 2, 2, 1), "SAME")
            yield _harness(
                reducer,
                "everything",
                random((5, 6, 4), dtype),
                dtype,
                (2, 3, 2),
                (2, 1, 1),
                ((2, -1), (1, 3), (0, 1)),
                (1, 2, 1),
                (2, 1, 3),
            )
        for dtype in INTEGER:
            yield _harness(reducer, "full_range", full_range((6, 5), dtype), dtype, (3, 2))


@harnesses
@symbolic(every_axis)
def special_values():
    for reducer in (lax.max, lax.min):
        for dtype in (*LOW_PRECISION, np.float32, np.float64, *INTEGER):
            values = specials(dtype)
            if dtype not in INTEGER:
                tiny = ml_dtypes.finfo(dtype).tiny
                small = np.array([tiny, tiny / 2, 0, -tiny / 4, tiny, -tiny], dtype)
                size = (1, 2) if reducer is lax.max else (2, 1)
                yield Harness(
                    _PRIMITIVES[reducer],
                    f"subnormal_{name(dtype)}",
                    lambda x, f=reducer, size=size: lax.reduce_window(
                        x, _neutral(f, x.dtype.type), f, size
                    ),
                    (np.stack(np.meshgrid(small, small)).reshape(12, 6),),
                    # Implementations may flush subnormals to zero.
                    close(ulps=0, atol=float(tiny)),
                )
                magnitude = np.abs(values.astype(np.float64))
                values = values[(magnitude == 0) | ~(magnitude < float(tiny))]
            pairs = np.stack(np.meshgrid(values, values), -1).reshape(-1, 2)
            if dtype not in INTEGER:
                nan = np.array(np.nan, dtype)
                signed = np.array([[-nan, 1], [1, -nan], [-nan, -np.inf], [nan, -nan]], dtype)
                pairs = np.concatenate([pairs, np.copysign(pairs, -1), signed])
            yield _harness(reducer, "pairs", pairs, dtype, (1, 2))
            yield _harness(reducer, "pairs_padded", pairs, dtype, (1, 2), padding="SAME")
    for dtype in (*LOW_PRECISION, np.float32, np.float64, *COMPLEX):
        x = np.array([1, np.inf, 2, -np.inf, 3, np.nan, -0.0, -0.0, 0, 1], dtype)
        yield _harness(lax.add, "nonfinite", x, dtype, (2,))
    for reducer, dtype in itertools.product((lax.max, lax.min), COMPLEX):
        x = np.array([1 + 2j, 1 - 2j, -3 + 4j, 1 + 1j, -0.0 + 0j, 5 - 1j], dtype)
        yield _harness(reducer, "lexicographic", x, dtype, (3,), padding="SAME")


@harnesses
@symbolic(every_axis)
def windows():
    for reducer, dtype in itertools.product(_PRIMITIVES, (np.float32, np.int32)):
        for shape, size, strides, padding, base, window in (
            ((), (), (), (), None, None),
            ((6,), (1,), (1,), "VALID", None, None),
            ((6,), (1,), (2,), ((1, 0),), None, None),
            ((6,), (3,), (1,), "SAME", None, None),
            ((6,), (6,), (1,), "VALID", None, None),
            ((6,), (2,), (3,), ((-1, 4),), None, None),
            ((20,), (9,), (1,), ((8, 0),), None, None),
            ((6,), (3,), (1,), ((9, 9),), None, None),
            ((6,), (3,), (2,), ((1, 2),), (3,), None),
            ((6,), (3,), (2,), ((1, 2),), None, (2,)),
            ((6,), (2,), (1,), ((-2, 5),), (2,), (3,)),
            ((6,), (2,), (1,), ((-9, 12),), None, None),
            ((4, 6), (2, 3), (2, 1), "SAME", None, None),
            ((4, 6), (4, 1), (1, 1), "VALID", None, None),
            ((4, 6), (1, 6), (1, 1), "VALID", None, None),
            ((4, 6), (2, 3), (1, 2), ((0, 1), (2, 2)), (2, 1), (1, 2)),
            ((2, 3, 5, 6), (1, 1, 2, 3), (1, 1, 2, 2), "SAME", None, None),
            ((2, 3, 5, 6), (2, 1, 2, 1), (1, 1, 1, 2), "SAME_LOWER", None, None),
            ((2, 3, 2, 4, 3), (2, 2, 2, 2, 2), (1, 1, 1, 1, 1), "SAME", None, None),
            ((2, 4, 5, 4, 2), (1, 3, 3, 3, 1), (1, 2, 2, 2, 1), "SAME", None, None),
            ((2, 2, 2, 2, 2, 2), (1, 2, 1, 2, 1, 2), (1, 1, 1, 1, 1, 1), "SAME", None, None),
            # Empty.
            ((0, 5), (1, 2), (1, 1), "VALID", None, None),
            ((3, 0), (1, 2), (1, 1), ((0, 0), (2, 1)), None, None),
            ((3, 0), (1, 2), (1, 1), ((0, 0), (2, 1)), (1, 3), None),
            ((3, 1), (1, 2), (1, 1), "VALID", None, None),
            ((3, 4), (5, 2), (1, 1), "VALID", None, None),
            ((3, 4, 0), (2, 2, 1), (1, 1, 1), "SAME", None, None),
        ):
            parts = (shape, size, strides, padding, base, window)
            case = "_".join(str(part) for part in parts if part is not None)
            yield _harness(reducer, case, random(shape, dtype), dtype, *parts[1:])


@harnesses
@symbolic(every_axis)
def any_function():
    """Yields harnesses of `reduce_window` with arbitrary functions.

    The result of a function that is neither associative nor commutative shows in which order the
    elements are combined.
    """

    def horner(x, y):
        return x * 3 + y

    for dtype in (np.int32, np.uint8, np.int64):
        for shape, size, padding, base, window in (
            ((6,), (3,), "VALID", None, None),
            ((6,), (3,), "SAME", None, None),
            ((6,), (2,), ((2, 1),), (2,), None),
            ((6,), (2,), ((2, -1),), None, (3,)),
            ((3, 4), (2, 3), "VALID", None, None),
            ((3, 4), (2, 2), "SAME", None, None),
            ((3, 4), (2, 3), ((0, 0), (0, 1)), None, None),
            ((3, 4), (2, 3), ((0, 0), (2, 2)), None, None),
            ((3, 3, 2), (2, 2, 2), "SAME", None, None),
            ((0, 4), (1, 2), "VALID", None, None),
            ((), (), (), None, None),
            ((20,), (130,), ((120, 0),), None, None),
            ((20, 3), (66, 2), ((60, 0), (1, 1)), None, None),
        ):
            yield Harness(
                "reduce_window",
                f"horner_{shape}_{size}_{padding}_{base}_{window}_{name(dtype)}",
                lambda x, size=size, padding=padding, base=base, window=window: lax.reduce_window(
                    x, np.array(1, x.dtype), horner, size, (1,) * len(size), padding, base, window
                ),
                (random(shape, dtype),),
                dtype=dtype,
                # XLA may take elements that can be padding last, if it knows the sizes.
                symbolic=every_axis if len(shape) < 2 or padding == "VALID" else axes(),
            )
    for dtype in ALL:
        operation = lax.bitwise_xor if dtype == np.bool_ or dtype in INTEGER else lax.mul
        init = np.array(1, dtype)
        yield Harness(
            "reduce_window",
            f"{operation.__name__}_{name(dtype)}",
            lambda x, f=operation, init=init: lax.reduce_window(x, init, f, (2, 3), (1, 2), "SAME"),
            (random((4, 5), dtype, 0.5, 2),),
            exact if operation is lax.bitwise_xor else close(ulps=12),
        )
    for reducer, dtype in itertools.product(_PRIMITIVES, (np.float32, np.int8)):
        # The initial value is an operand, and not neutral.
        yield Harness(
            "reduce_window",
            f"{reducer.__name__}_init=2_{name(dtype)}",
            lambda x, init, f=reducer: lax.reduce_window(x, init, f, (2, 2), (1, 1), "SAME"),
            (random((4, 5), dtype), np.array(2, dtype)),
            close(ulps=8, atol=1e-5),
        )


@harnesses
@symbolic(every_axis)
def several_operands():
    def argmax(x, y):
        keep = x[0] >= y[0]
        return tuple(lax.select(keep, old, new) for old, new in zip(x, y, strict=True))

    for dtype in (np.float32, np.int16, ml_dtypes.bfloat16):
        # The values have ties, and some windows are only padding.
        for padding in ("VALID", "SAME", ((3, 0), (0, 3))):
            yield Harness(
                "reduce_window",
                f"argmax_{padding}_{name(dtype)}",
                lambda x, y, padding=padding: lax.reduce_window(
                    (x, y), (np.array(-1, x.dtype), np.int32(-1)), argmax, (2, 2), (1, 1), padding
                ),
                (whole((5, 4), dtype), random((5, 4), np.int32)),
                dtype=dtype,
            )
    yield Harness(
        "reduce_window",
        "mixed_dtypes",
        lambda x, y, z: lax.reduce_window(
            (x, y, z), (np.int32(0), np.array(False), np.float32(7)), _mixed, (3,), (1,), "SAME"
        ),
        (random((6,), np.int32), random((6,), np.bool_), random((6,), np.float32)),
    )


def _mixed(x, y):
    return x[0] * 2 + y[1].astype(np.int32), x[1] ^ (y[0] > 0), y[2]
