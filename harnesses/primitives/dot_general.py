"""Contractions of two operands."""

import itertools

import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import ALL, COMPLEX, FLOAT, INTEGER, full_range, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, close_to_largest, exact
from harnesses.harness import DERIVATIVES, Harness, harnesses

# The shapes of lhs and rhs, and the contracted axes and batch axes of both.
_MATRICES = ((3, 4), (4, 5), ((1,), (0,)), ((), ()))
_DIMENSIONS = (
    _MATRICES,
    ((4, 3), (4, 5), ((0,), (0,)), ((), ())),
    ((3, 4), (5, 4), ((1,), (1,)), ((), ())),
    ((4, 3), (5, 4), ((0,), (1,)), ((), ())),
    ((4,), (4,), ((0,), (0,)), ((), ())),
    ((3, 4), (4,), ((1,), (0,)), ((), ())),
    ((4,), (4, 5), ((0,), (0,)), ((), ())),
    ((3,), (4,), ((), ()), ((), ())),
    ((), (), ((), ()), ((), ())),
    ((), (2, 3), ((), ()), ((), ())),
    ((2, 3, 4), (4, 5), ((2,), (0,)), ((), ())),
    ((2, 3, 4), (5, 3), ((1,), (1,)), ((), ())),
    ((2, 3, 4), (5, 3, 4), ((1, 2), (1, 2)), ((), ())),
    ((2, 3, 4), (4, 3, 5), ((1, 2), (1, 0)), ((), ())),
    ((2, 3, 4), (4, 2, 3), ((2, 0, 1), (0, 1, 2)), ((), ())),
    ((2, 3, 4), (5, 3, 2), ((1,), (1,)), ((0,), (2,))),
    # Batch axes at any position.
    ((2, 3, 4), (2, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((2, 4, 3), (2, 5, 4), ((1,), (2,)), ((0,), (0,))),
    ((3, 2, 4), (4, 5, 2), ((2,), (0,)), ((1,), (2,))),
    ((3, 4, 2), (2, 4), ((1,), (1,)), ((2,), (0,))),
    ((2, 3), (2, 3), ((1,), (1,)), ((0,), (0,))),
    ((2, 3), (2, 3), ((), ()), ((0, 1), (0, 1))),
    ((2, 3), (2, 4), ((), ()), ((0,), (0,))),
    ((2, 5, 3, 4), (2, 6, 3, 4), ((3,), (3,)), ((0, 2), (0, 2))),
    ((2, 3, 5, 6), (2, 6, 3, 4), ((3,), (1,)), ((0, 1), (0, 2))),
    ((2, 3, 4, 5), (3, 2, 4, 5), ((2, 3), (2, 3)), ((1, 0), (0, 1))),
    ((2, 1, 3, 4), (1, 2, 4, 5), ((3,), (2,)), ((0, 1), (1, 0))),
    ((2, 1, 3, 1, 4), (2, 4, 1, 5), ((4,), (1,)), ((0,), (0,))),
    ((2, 2, 2, 2, 2, 2), (2, 2, 2, 2, 2, 2), ((1, 3), (4, 0)), ((5, 2), (1, 3))),
    # Empty.
    ((3, 0), (0, 5), ((1,), (0,)), ((), ())),
    ((0, 4), (4, 5), ((1,), (0,)), ((), ())),
    ((3, 4), (4, 0), ((1,), (0,)), ((), ())),
    ((0, 3, 4), (0, 4, 5), ((2,), (1,)), ((0,), (0,))),
    ((2, 3, 0), (2, 0, 5), ((2,), (1,)), ((0,), (0,))),
    ((2, 0, 4), (5, 4, 2), ((2,), (1,)), ((0,), (2,))),
)
# JAX multiplies cotangents in the preferred dtype, and converts the products to that of the
# operands. Between the two, XLA may leave the rounding to bfloat16 out.
_OF_BFLOAT16 = close_to_largest(ulps=2**15)


def _dot(contract, batch, **params):
    return lambda lhs, rhs: lax.dot_general(lhs, rhs, (contract, batch), **params)


def _comparer(dtype, terms):
    """Returns a comparer that allows any order of summation.

    The tolerance is a few ulps of the largest partial sum.
    """
    if not jnp.issubdtype(dtype, np.inexact):
        return exact
    return close(ulps=4, atol=4 * terms * float(ml_dtypes.finfo(dtype).eps))


def _operands(lhs, rhs, lhs_dtype, rhs_dtype=None):
    rhs_dtype = rhs_dtype or lhs_dtype
    return random(lhs, lhs_dtype, -2, 2), random(rhs, rhs_dtype, -2, 2)


@harnesses
@symbolic(every_axis)
def dimensions():
    for lhs, rhs, contract, batch in _DIMENSIONS:
        for dtype in (np.float32, np.int32, np.complex64, ml_dtypes.bfloat16):
            if dtype in (np.complex64, ml_dtypes.bfloat16) and len(lhs) < 2:
                continue
            yield Harness(
                "dot_general",
                f"{lhs}_{rhs}_contract={contract}_batch={batch}_{name(dtype)}",
                _dot(contract, batch),
                _operands(lhs, rhs, dtype),
                _comparer(dtype, 24),
            )


@harnesses
@symbolic(every_axis)
def dtypes():
    batched = ((2, 5, 6), (2, 6, 3), ((2,), (1,)), ((0,), (0,)))
    for dtype, (lhs, rhs, contract, batch) in itertools.product(ALL, (_MATRICES, batched)):
        yield Harness(
            "dot_general",
            f"dtype={name(dtype)}_{'batched' if batch[0] else 'matrices'}",
            _dot(contract, batch),
            _operands(lhs, rhs, dtype),
            _comparer(dtype, 12),
        )
    for dtype in INTEGER:
        yield Harness(
            "dot_general",
            f"wrap_{name(dtype)}",
            _dot(*_MATRICES[2:]),
            (full_range((3, 4), dtype), full_range((4, 5), dtype)),
        )
    for dtype in (*FLOAT, *COMPLEX):
        # So many terms that accumulation in low precision would fail the comparison.
        yield Harness(
            "dot_general",
            f"long_{name(dtype)}",
            _dot(((1,), (0,)), ((), ())),
            (random((2, 1000), dtype, 0, 1), random((1000, 3), dtype, 0, 1)),
            close(ulps=2 if dtype in FLOAT[:2] else 64),
        )


@harnesses
@symbolic(every_axis)
def nonfinite():
    for dtype in (*FLOAT, np.complex64):
        rows = np.array(
            [[1, np.inf, 2], [np.nan, 1, 1], [np.inf, -np.inf, 0], [0, 0, 1]], np.float64
        ).astype(dtype)
        columns = np.array([[1, 0, np.inf], [1, -1, 0], [2, 3, 0]], np.float64).astype(dtype)
        if dtype == np.complex64:
            # Implementations differ in the parts of products of complex infinities.
            rows, columns = (
                np.where(np.isinf(rows), 3, rows),
                np.where(np.isinf(columns), 3, columns),
            )
        yield Harness(
            "dot_general",
            f"nonfinite_{name(dtype)}",
            _dot(((1,), (0,)), ((), ())),
            (rows, columns),
            close(),
        )


@harnesses
@symbolic(every_axis)
def element_types():
    """Yields harnesses with operands of two dtypes, or with a preferred dtype of the result."""
    int8, int16, int32, int64 = np.int8, np.int16, np.int32, np.int64
    float16, bfloat16, float32, float64 = np.float16, ml_dtypes.bfloat16, np.float32, np.float64
    for dtype, preferred in (
        (int8, int32),
        (int8, int16),
        (int8, np.uint8),
        (int8, np.uint32),
        (int8, float32),
        (int8, bfloat16),
        (np.uint8, np.int8),
        (np.uint8, np.int32),
        (np.uint8, float16),
        (int16, int64),
        (int32, float32),
        (int32, int64),
        (np.uint32, int32),
        (int64, float64),
        (np.bool_, int32),
        (np.bool_, float32),
        (np.bool_, int8),
        (float16, float32),
        (float16, bfloat16),
        (float16, float64),
        (bfloat16, float32),
        (bfloat16, float16),
        (bfloat16, int32),
        (float32, float64),
        (float32, float16),
        (float32, bfloat16),
        (float32, int32),
        (float32, np.uint8),
        (float32, np.bool_),
        (float64, float32),
        (float64, int64),
        (float32, np.complex64),
        (float32, np.complex128),
        (np.complex64, np.complex128),
        (np.complex64, float32),
        (np.complex64, int32),
    ):
        # Whole numbers, so that a conversion to integers rounds nothing.
        whole = random((3, 4), np.int32, 0 if np.dtype(dtype).kind in "ub" else -9, 9)
        more = random((4, 5), np.int32, 0 if np.dtype(dtype).kind in "ub" else -9, 9)
        yield Harness(
            "dot_general",
            f"dtype={name(dtype)}_preferred={name(preferred)}",
            _dot(*_MATRICES[2:], preferred_element_type=preferred),
            (_cast(whole, dtype), _cast(more, dtype)),
            _comparer(preferred, 4 * 81),
            derivatives=_OF_BFLOAT16 if preferred == bfloat16 else DERIVATIVES,
        )
    for lhs, rhs, preferred in (
        (int8, int32, None),
        (int8, np.uint8, None),
        (int8, float32, None),
        (int8, float32, int32),
        (np.bool_, float32, None),
        (np.bool_, int8, None),
        (float16, float32, None),
        (bfloat16, float32, None),
        (float32, bfloat16, float64),
        (float16, bfloat16, float32),
        (float32, float64, None),
        (float32, float64, float32),
        (float32, np.complex64, None),
        (int32, np.complex128, None),
        (np.uint16, int64, int64),
    ):
        yield Harness(
            "dot_general",
            f"dtypes={name(lhs)},{name(rhs)}_preferred={preferred and name(preferred)}",
            _dot(*_MATRICES[2:], preferred_element_type=preferred),
            _operands((3, 4), (4, 5), lhs, rhs),
            _comparer(preferred or np.promote_types(np.float16, lhs), 24)
            if preferred is int32
            else close(ulps=8, atol=1e-2 if bfloat16 in (lhs, rhs) and not preferred else 1e-4),
        )


def _cast(make, dtype):
    return lambda rng: make(rng).astype(dtype)


@harnesses
@symbolic(every_axis)
def precisions():
    """Yields harnesses of precision hints and of dot algorithms, which name compute dtypes."""
    presets = lax.DotAlgorithmPreset
    for precision, dtype in (
        (lax.Precision.DEFAULT, np.float32),
        (lax.Precision.HIGH, np.float32),
        (lax.Precision.HIGHEST, np.float32),
        (lax.Precision.HIGHEST, ml_dtypes.bfloat16),
        ((lax.Precision.DEFAULT, lax.Precision.HIGHEST), np.float32),
        (presets.DEFAULT, np.float32),
        (presets.F16_F16_F16, np.float16),
        (presets.F16_F16_F16, np.float32),
        (presets.F32_F32_F32, np.float32),
        (presets.F32_F32_F32, ml_dtypes.bfloat16),
        (presets.F64_F64_F64, np.float64),
        (presets.F64_F64_F64, np.float32),
        (presets.BF16_BF16_F32, ml_dtypes.bfloat16),
        (presets.BF16_BF16_F32, np.float32),
        (presets.BF16_BF16_F32_X3, np.float32),
        (presets.BF16_BF16_F32_X6, np.float32),
    ):
        yield Harness(
            "dot_general",
            f"precision={_describe(precision)}_{name(dtype)}",
            _dot(*_MATRICES[2:], precision=precision),
            _operands((3, 4), (4, 5), dtype),
            _algorithm_comparer(precision, dtype),
        )


def _algorithm_comparer(precision, dtype):
    """Compares in the dtypes that an algorithm names, whatever the dtypes of the arrays are.

    Natural targets do not round sums of 16 bits. XLA rounds operands of float32 to bfloat16 only
    where it computes the product element by element, which depends on shapes and on its version.
    """
    presets = lax.DotAlgorithmPreset
    if precision == presets.F16_F16_F16:
        return close(rtol=4 * float(jnp.finfo(np.float16).eps), atol=2e-3)
    if precision == presets.BF16_BF16_F32 and dtype == np.float32:
        return close(rtol=4 * float(jnp.finfo(ml_dtypes.bfloat16).eps), atol=4e-2)
    return close(ulps=4, atol=4e-2) if dtype in FLOAT[:2] else close(ulps=8, atol=1e-5)


def _describe(precision):
    if isinstance(precision, tuple):
        return ",".join(map(_describe, precision))
    return f"{type(precision).__name__}.{precision.name}"
