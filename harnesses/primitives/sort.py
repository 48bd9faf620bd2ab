"""Sorting along one dimension."""

import numpy as np
from jax import lax

from harnesses.arguments import (
    ALL,
    BOOL,
    COMPLEX,
    FLOAT,
    INEXACT,
    INTEGER,
    full_range,
    name,
    random,
    specials,
)
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses

# Pairs of dtypes of two keys. Some fit into 64 bits together and some do not.
_PAIRS = [
    (np.bool_, np.int8),
    (np.uint8, np.float32),
    (np.float16, np.uint32),
    (np.int32, np.uint32),
    (np.uint32, np.int32),
    (np.int64, np.float32),
    (np.float32, np.uint64),
    (np.complex64, np.int16),
    (np.int8, np.complex128),
]


def _sort(dimension, num_keys=1, is_stable=True):
    return lambda *operands: lax.sort(
        operands, dimension=dimension, num_keys=num_keys, is_stable=is_stable
    )


def _shuffled(values):
    """Returns a maker of a random permutation of the values, each of which occurs three times."""
    return lambda rng: rng.permutation(np.tile(values, 3))


@harnesses
@symbolic(every_axis)
def sort():
    for dtype in ALL:
        x = full_range((3, 40), dtype) if dtype in INTEGER else random((3, 40), dtype)
        yield Harness("sort", name(dtype), _sort(1), (x,))
        values = specials(dtype)
        if dtype in COMPLEX:
            values = values[::5]
        position = np.arange(3 * values.size, dtype=np.int32)
        yield Harness("sort", f"specials_{name(dtype)}", _sort(0), (_shuffled(values),))
        # The positions show that the order is stable.
        yield Harness("sort", f"positions_{name(dtype)}", _sort(0), (_shuffled(values), position))
        # The second operand, of this dtype, is not a key.
        yield Harness(
            "sort",
            f"carried_{name(dtype)}",
            _sort(0),
            (random((7, 3), np.int32, 0, 3), random((7, 3), dtype)),
        )


@harnesses
@symbolic(every_axis)
def sort_by_several_keys():
    for first, second in _PAIRS:
        args = (random((2, 60), first, 0, 3), random((2, 60), second), random((2, 60), np.float32))
        case = f"{name(first)},{name(second)}"
        yield Harness("sort", f"two_keys_{case}", _sort(1, 2), args)
    for first, second in _PAIRS[1:5]:
        x, y = np.meshgrid(specials(first), specials(second))
        args = tuple(np.stack([z.ravel(), z.ravel()[::-1]]) for z in (x, y))
        case = f"{name(first)},{name(second)}"
        yield Harness("sort", f"two_keys_specials_{case}", _sort(1, 2), args)
    for dtypes in (
        (np.int8, np.uint8, np.int16),
        (np.int32, np.int32, np.int32),
        (np.int16, np.uint64, np.int8),
        (np.float32, np.bool_, np.complex64),
    ):
        args = tuple(random((80,), dtype, 0, 2) for dtype in dtypes)
        position = np.arange(80, dtype=np.uint16)
        case = ",".join(map(name, dtypes))
        yield Harness("sort", f"three_keys_{case}", _sort(0, 3), (*args, position))


@harnesses
@symbolic(every_axis)
def sort_shapes():
    for shape, dimension in (
        ((0,), 0),
        ((1,), 0),
        ((3, 0), 1),
        ((3, 0), 0),
        ((0, 3), 1),
        ((5, 4), 0),
        ((4, 5, 3), 1),
        ((4, 5, 3), 0),
        ((2, 3, 2, 5), 3),
        ((2000,), 0),
    ):
        args = random(shape, np.float32), random(shape, np.int8, 0, 9)
        yield Harness("sort", f"shape={shape}_dimension={dimension}", _sort(dimension), args)
    for dtype in (np.int32, np.float32):
        yield Harness(
            "sort",
            f"unstable_{name(dtype)}",
            _sort(0, is_stable=False),
            (random((50,), dtype, -99, 99),),
        )
    for dtype in BOOL + FLOAT[:1] + INEXACT[2:3]:
        yield Harness("sort", f"dimension=0_{name(dtype)}", _sort(0), (random((9, 4), dtype),))
