"""Comparisons."""

import numpy as np
from jax import lax
from jax.extend.core import primitives

from harnesses.arguments import ALL, is_complex, is_float, name, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from harnesses.primitives.binary import broadcast_binary, some_pairs


@harnesses
@symbolic(every_axis)
def comparison():
    for primitive in ("eq", "ne", "lt", "le", "gt", "ge"):
        fun = getattr(lax, primitive)
        for dtype in ALL:
            if not is_complex(dtype) or primitive in ("eq", "ne"):
                yield Harness(primitive, name(dtype), fun, some_pairs(dtype))
        yield from broadcast_binary(primitive, fun, np.float32)


def _with_nans(dtype):
    """Returns the special values, and NaNs of both signs and several payloads."""
    if not is_float(dtype):
        return specials(dtype)
    size = 8 * np.dtype(dtype).itemsize
    word = np.dtype(f"u{size // 8}").type
    nan = np.array(np.nan, dtype).view(word) & word((1 << (size - 1)) - 1)
    nans = np.array([nan, nan + word(1), nan | word(1 << (size - 1))], word).view(dtype)
    return np.concatenate([specials(dtype), nans])


@harnesses
@symbolic(every_axis)
def total_order():
    for primitive in ("eq_to", "lt_to", "le_to"):
        fun = getattr(primitives, f"{primitive}_p").bind
        for dtype in ALL:
            if not is_complex(dtype):
                x, y = np.meshgrid(_with_nans(dtype), _with_nans(dtype))
                yield Harness(primitive, name(dtype), fun, (x.ravel(), y.ravel()))
