"""Weights that a file stores in 16 bits or fewer, although the model computes in more."""

import math
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import tensorflow as tf

from lowering import narrow_formats
from lowering.ops.constants import narrow_of

# In fewer bytes there is nothing to win: the op that widens a weight takes as much.
LARGE_BYTES = 4096

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_FLOAT16 = np.dtype(np.float16)
_SHORT = tuple(map(np.dtype, (np.int8, np.uint8, np.int16, np.uint16)))
_OF_GRAPHS = (*_SHORT, _BFLOAT16, _FLOAT16)
# The least bits come first.
_DTYPES = tuple(sorted((*narrow_formats.NARROW, *_OF_GRAPHS), key=narrow_formats.width))
# All files have these. What a program has in other integers, the graph has in short ones.
_OF_ALL_FILES = frozenset((*_SHORT, _FLOAT16))


def dtypes_of(functions: Sequence[Any]) -> frozenset[np.dtype]:
    """The dtypes of up to 16 bits that arguments, weights or results of functions have.

    Args:
      functions: concrete functions of TensorFlow.
    """
    tensors = (
        x
        for function in functions
        for op in function.graph.get_operations()
        for x in (*op.outputs, *op.inputs)
    )
    found = {x.dtype.base_dtype for x in tensors}
    found.update(v.dtype for function in functions for v in function.graph.variables)
    of_graphs = (dtype for dtype in _OF_GRAPHS if tf.dtypes.as_dtype(dtype) in found)
    return frozenset(of_graphs).union(*(narrow_of(function.graph) for function in functions))


def sizes_in_16_bits(functions: Sequence[Any]) -> frozenset[int]:
    """How many elements the large weights in 16 bits of functions have.

    There are none where a matrix is in float32, as it may be added to one in 16 bits.

    Args:
      functions: concrete functions of TensorFlow.
    """
    weights = [v for function in functions for v in function.graph.variables]
    weights += [
        op.outputs[0]
        for function in functions
        for op in function.graph.get_operations()
        if op.type == "Const"
    ]
    floats = [(x.dtype.base_dtype.size, x.shape.as_list()) for x in weights if x.dtype.is_floating]
    if any(width == 4 and sum(size > 1 for size in shape) > 1 for width, shape in floats):
        return frozenset()
    sizes = (math.prod(shape) for width, shape in floats if width == 2)
    return frozenset(size for size in sizes if 4 * size >= LARGE_BYTES)


def in_fewer_bits(
    x: np.ndarray, of_program: Iterable[np.dtype], of_file: Collection[np.dtype] = ()
) -> np.ndarray | None:
    """A weight in a narrower dtype of the program that holds its numbers; None if none does.

    Args:
      x: the weight, as the model computes with it.
      of_program: dtypes of the program, as `dtypes_of` finds them.
      of_file: those that the file may have beside float16 and integers of 8 and 16 bits. Float16
        takes the place of other floats, where it rounds only numbers so small that next to the
        largest one they are nothing in bfloat16.
    """
    if x.nbytes < LARGE_BYTES or x.dtype.kind not in "iuf":
        return None
    known, bits = frozenset(of_program), 8 * x.itemsize
    dtypes = [d for d in _DTYPES if d in known and narrow_formats.width(d) < bits]
    others = [d for d in dtypes if not (d in _OF_ALL_FILES or d in of_file)]
    for dtype in dtypes:
        if dtype not in others and (stored := _stored(x, dtype)) is not None:
            return stored
    is_of_others = any(_stored(x, d) is not None for d in others if not _is_integer(d))
    return _as_float16(x) if is_of_others else None


def _is_integer(dtype):
    return narrow_formats.limits(dtype) is not None


def _stored(x, dtype):
    """An array in a dtype, if each number keeps its bits."""
    if _is_integer(x.dtype) and not _is_integer(dtype):
        return None
    with np.errstate(all="ignore"):
        stored = x.astype(dtype)
    bits = f"u{x.itemsize}"
    is_same = np.array_equal(stored.astype(x.dtype).view(bits), x.view(bits))
    return stored if is_same else None


def _as_float16(x):
    """Numbers as float16; None if that loses more than rounding to bfloat16 may."""
    with np.errstate(all="ignore"):
        stored = x.astype(_FLOAT16)
        difference = np.where(x == stored, np.float32(0), np.abs(x - stored.astype(x.dtype)))
        lost = np.nanmax(difference, initial=0)
        largest = np.max(np.abs(x), where=np.isfinite(x), initial=0)
    is_same = np.array_equal(np.isfinite(x), np.isfinite(stored)) and (
        np.array_equal(np.isnan(x), np.isnan(stored))
    )
    return stored if is_same and lost <= largest * 2.0**-16 else None
