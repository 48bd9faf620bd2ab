"""Roundings to floats of 8 bits, which two casts stand for where the set of operators has them.

`tensors.rounding` computes them by ops that all runtimes have. Casts take half to three quarters of
the time.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.patterns import Match, op, pattern
from lowering.narrow_formats import format_of

# Those that onnxruntime's CPU casts to.
DTYPES = tuple(
    map(
        np.dtype,
        (
            ml_dtypes.float8_e4m3fn,
            ml_dtypes.float8_e4m3fnuz,
            ml_dtypes.float8_e5m2,
            ml_dtypes.float8_e5m2fnuz,
        ),
    )
)
# See `onnx.quirks.casts_to_float8`.
_WRONG_CLOSE_TO_THE_LARGEST = DTYPES[0], DTYPES[2]


def rounding(dtype: np.dtype) -> Any:
    """The pattern of a rounding of float32 to a dtype, as `tensors.rounding` has it."""
    form, digits = format_of(dtype), np.finfo(np.float32).nmant

    def rounded(x: Any) -> Any:
        size = op.Min(op.Abs(x), 2.0**20)
        product = op.Mul(size, 2.0**digits + 1)
        power = op.Sub(product, op.Sub(product, size))
        power = op.Where(op.Greater(power, size), op.Mul(power, 0.5), power)
        least = form.tiny * 2.0**-form.mantissa
        unit = op.Max(op.Mul(power, 2.0**-form.mantissa), least)
        shift = op.Mul(unit, 1.5 * 2.0**digits)
        result = op.Sub(op.Add(size, shift), shift)
        result = op.Where(op.Greater(result, form.largest), form.overflow, result)
        return op.Where(op.Equal(x, x), op.Mul(op.Sign(x), result), x)

    return pattern(rounded)


def casts(dtype: np.dtype) -> Callable[..., ir.Value | None]:
    """What replaces a rounding to a dtype by casts."""

    def replacement(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
        x = found["x"]
        if x.dtype != dtypes.FLOAT:
            return None
        if dtype in _WRONG_CLOSE_TO_THE_LARGEST:
            least = b.like(x, _least_beyond(dtype))
            is_beyond = b.op("GreaterOrEqual", b.op("Abs", x), least)
            # Twice a number that is beyond the largest one is far from that.
            x = b.op("Where", is_beyond, b.op("Add", x, x), x, dtype=dtypes.FLOAT)
        of_8_bits = dtypes.of(dtype)
        stored = b.op("Cast", x, to=int(of_8_bits), saturate=0, dtype=of_8_bits)
        return b.cast(stored, dtypes.FLOAT)

    return replacement


def _least_beyond(dtype: np.dtype) -> np.float32:
    """The least positive number of float32 that a dtype has no number for."""
    form = format_of(dtype)
    unit = 2.0 ** (np.floor(np.log2(form.largest)) - form.mantissa)
    between = np.float32(form.largest + unit / 2)
    is_beyond = not np.isfinite(between.astype(dtype).astype(np.float32))
    return between if is_beyond else np.nextafter(between, np.float32(np.inf))
