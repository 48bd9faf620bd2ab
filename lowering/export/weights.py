"""Weights that a file stores in 16 bits or fewer, although the model computes in 32 bits."""

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
# The least bits come first.
_INTEGERS = (np.int8, np.uint8, np.int16, np.uint16)
_OF_GRAPHS = tuple(map(np.dtype, (*_INTEGERS, _BFLOAT16, _FLOAT16)))
_DTYPES = (*narrow_formats.FLOAT, *_OF_GRAPHS)


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


def in_fewer_bits(
    x: np.ndarray, of_program: Iterable[np.dtype], of_file: Collection[np.dtype] = ()
) -> np.ndarray | None:
    """A weight in a narrower dtype of the program that holds its numbers; None if none does.

    Args:
      x: the weight in 32 bits, as the model computes with it.
      of_program: dtypes of the program, as `dtypes_of` finds them.
      of_file: those floating-point dtypes that the file may have beside float16. Float16 takes the
        place of others, where it rounds only numbers so small that next to the largest one they are
        nothing in bfloat16.
    """
    if x.nbytes < LARGE_BYTES or x.dtype not in (np.float32, np.int32):
        return None
    dtypes = list(filter(frozenset(of_program).__contains__, _DTYPES))
    others = [d for d in dtypes if not (d.kind in "iu" or d == _FLOAT16 or d in of_file)]
    for dtype in dtypes:
        if dtype not in others and (stored := _stored(x, dtype)) is not None:
            return stored
    is_of_others = any(_stored(x, dtype) is not None for dtype in others)
    return _as_float16(x) if is_of_others else None


def _stored(x, dtype):
    """An array in a dtype, if each number keeps its bits."""
    if (x.dtype.kind == "i") != (dtype.kind in "iu") and x.dtype.kind == "i":
        return None
    with np.errstate(all="ignore"):
        stored = x.astype(dtype)
    is_same = np.array_equal(stored.astype(x.dtype).view(np.int32), x.view(np.int32))
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
