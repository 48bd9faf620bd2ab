"""Primitives that join or split arrays."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, name, random
from harnesses.axes import axes, axes_but, every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def concatenate():
    for dtype in ALL:
        yield _concatenate([(2, 3), (1, 3)], 0, dtype)
    for shapes, dimension in [
        ([(3,)], 0),
        ([(3,), (4,), (5,)], 0),
        ([(2, 3), (2, 1), (2, 4)], 1),
        ([(2, 3, 4)] * 5, 1),
        ([(0,), (3,)], 0),
        ([(3,), (0,)], 0),
        ([(0,), (0,)], 0),
        ([(2, 0), (2, 3), (2, 0)], 1),
        ([(0, 3), (0, 4)], 1),
        ([(2, 1, 2, 1, 2, 2, 1, 2, 2, 2)] * 2, 4),
    ]:
        yield _concatenate(shapes, dimension)
    yield Harness(
        "concatenate",
        "constant_operand",
        lambda x: lax.concatenate([x, np.ones((2, 2), np.float32), x], 0),
        (random((1, 2), np.float32),),
        symbolic=axes(),
    )


def _concatenate(shapes, dimension, dtype=np.float32):
    case = f"shapes={shapes}_dimension={dimension}_{name(dtype)}"
    return Harness(
        "concatenate",
        case.replace(" ", ""),
        lambda *xs: lax.concatenate_p.bind(*xs, dimension=dimension),
        tuple(random(shape, dtype) for shape in shapes),
    )


@harnesses
def split():
    for dtype in ALL:
        yield _split((2, 6), (1, 2, 3), 1, dtype)
    for shape, sizes, axis in [
        ((6,), (6,), 0),
        ((6,), (2, 2, 2), 0),
        ((6,), (0, 6, 0), 0),
        ((6,), (1, 5), 0),
        ((0,), (0, 0), 0),
        ((4, 3), (2, 2), 0),
        ((4, 3), (1, 1, 1), 1),
        ((0, 3), (1, 2), 1),
        ((2, 1, 2, 1, 2, 2, 1, 2, 2, 3), (1, 2), 9),
    ]:
        yield _split(shape, sizes, axis)


def _split(shape, sizes, axis, dtype=np.float32):
    case = f"shape={shape}_sizes={sizes}_axis={axis}_{name(dtype)}"
    return Harness(
        "split",
        case.replace(" ", ""),
        lambda x: lax.split(x, sizes, axis),
        (random(shape, dtype),),
        symbolic=axes_but(axis),
    )


@harnesses
@symbolic(every_axis)
def stack():
    for dtype in ALL:
        yield _stack((2, 3), 2, 1, dtype)
    for shape, count, axis in [
        ((), 1, 0),
        ((), 3, 0),
        ((3,), 1, 1),
        ((2, 3), 3, 0),
        ((2, 3), 3, 2),
        ((0, 3), 2, 1),
        ((2, 1, 2, 1, 2, 2, 1, 2, 2), 2, 5),
    ]:
        yield _stack(shape, count, axis)


def _stack(shape, count, axis, dtype=np.float32):
    case = f"shape={shape}_count={count}_axis={axis}_{name(dtype)}"
    return Harness(
        "stack",
        case.replace(" ", ""),
        lambda *xs: lax.stack(xs, axis),
        (random(shape, dtype),) * count,
    )


@harnesses
def unstack():
    for dtype in ALL:
        yield _unstack((2, 3), 1, dtype)
    for shape, axis in [
        ((1,), 0),
        ((4,), 0),
        ((4, 0), 0),
        ((2, 3, 4), 1),
        ((2, 3, 4), 2),
        ((2, 1, 2, 1, 2, 2, 1, 2, 2, 2), 5),
    ]:
        yield _unstack(shape, axis)


def _unstack(shape, axis, dtype=np.float32):
    case = f"shape={shape}_axis={axis}_{name(dtype)}"
    return Harness(
        "unstack",
        case.replace(" ", ""),
        lambda x: lax.unstack(x, axis),
        (random(shape, dtype),),
        symbolic=axes_but(axis),
    )
