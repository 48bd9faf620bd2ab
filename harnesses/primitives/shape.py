"""Primitives that change the shape or the order of elements, but not their values."""

import itertools

import numpy as np
from jax import lax

from harnesses.arguments import ALL, FLOAT, name, random, specials
from harnesses.axes import axes_of, every_axis, symbolic
from harnesses.harness import Harness, harnesses
from lowering import jax_compat

# TensorFlow's eager kernels support at most eight dimensions.
MANY = (2, 1, 2, 1, 2, 2, 1, 2, 2, 2)


@harnesses
def reshape():
    for dtype in ALL:
        yield _reshape((2, 3, 4), (4, 6), dtype=dtype)
    for dtype in FLOAT:
        x = specials(dtype)
        yield Harness(
            "reshape",
            f"specials_{name(dtype)}",
            lambda x: lax.reshape(x, (1, *x.shape)),
            (x,),
            symbolic=every_axis,
        )
    for shape, sizes in [
        ((), (1,)),
        ((), (1, 1, 1)),
        ((1, 1), ()),
        ((6,), (2, 3)),
        ((2, 3), (6,)),
        ((2, 3), (3, 2)),
        ((2, 3), (1, 2, 1, 3, 1)),
        ((2, 3, 4, 5), (6, 20)),
        ((0,), (0, 3)),
        ((0, 3), (0,)),
        ((2, 0), (0, 2)),
        ((0,), (2, 0, 5)),
        (MANY, (64, 2)),
        ((128,), MANY),
    ]:
        yield _reshape(shape, sizes)
    for dimensions in [(0, 1, 2), (1, 0, 2), (2, 0, 1), (2, 1, 0), (0, 2, 1)]:
        yield _reshape((2, 3, 4), (4, 6), dimensions)
    yield _reshape((2, 3), (6,), (1, 0), np.int8)
    yield _reshape((2, 0, 3), (0, 6), (2, 0, 1))
    yield _reshape((1, 3), (3, 1), (1, 0))


def _reshape(shape, sizes, dimensions=None, dtype=np.float32):
    # Binds the primitive directly: `lax.reshape` with `dimensions` would transpose first.
    case = f"shape={shape}_new_sizes={sizes}_dimensions={dimensions}_{name(dtype)}"
    # An axis of the operand that divides one of the result, which follows it.
    axis, into = next(
        (
            (i, j)
            for (i, old), (j, new) in itertools.product(enumerate(shape), enumerate(sizes))
            if old > 1 and new > 0 and new % old == 0
        ),
        (None, None),
    )

    def reshape(x):
        new_sizes = list(sizes)
        if axis is not None:
            new_sizes[into] = sizes[into] // shape[axis] * x.shape[axis]
        return lax.reshape_p.bind(
            x, new_sizes=tuple(new_sizes), dimensions=dimensions, sharding=None
        )

    return Harness(
        "reshape",
        case.replace(" ", ""),
        reshape,
        (random(shape, dtype),),
        params={"dimensions": dimensions},
        symbolic=() if axis is None else axes_of([axis]),
    )


@harnesses
@symbolic(every_axis)
def broadcast_in_dim():
    for dtype in ALL:
        yield _broadcast_in_dim((3,), (2, 3, 4), (1,), dtype)
    for shape, result, axes in [
        ((), (3,), ()),
        ((), (0, 3), ()),
        ((3,), (3, 2), (0,)),
        ((3,), (2, 3), (1,)),
        ((1,), (3,), (0,)),
        ((1,), (2, 3), (0,)),
        ((1, 1), (2, 3), (0, 1)),
        ((2, 1), (2, 3), (0, 1)),
        ((1, 3), (2, 3), (0, 1)),
        ((2, 3), (2, 4, 3), (0, 2)),
        ((2, 3), (2, 3, 4), (0, 1)),
        ((2, 3), (4, 2, 3), (1, 2)),
        ((2, 3), (2, 1, 3), (0, 2)),
        ((2, 3), (1, 2, 3), (1, 2)),
        ((2, 3), (2, 3, 1), (0, 1)),
        ((1, 3), (5, 2, 4, 3), (1, 3)),
        ((0,), (2, 0), (1,)),
        ((1,), (0, 2), (0,)),
        ((0, 1), (0, 3), (0, 1)),
        ((2, 2, 2), (2, 3, 2, 3, 2, 3), (0, 2, 4)),
        ((2, 1, 2, 1, 2), MANY, (0, 1, 4, 6, 8)),
        ((2,), MANY, (4,)),
        (MANY, (2, *MANY), tuple(range(1, 11))),
    ]:
        yield _broadcast_in_dim(shape, result, axes)
    yield Harness(
        "broadcast_in_dim",
        "expand_dims",
        lambda x: lax.expand_dims(x, (0, 2, 4)),
        (random((2, 3), np.float32),),
    )


def _broadcast_in_dim(shape, result, axes, dtype=np.float32):
    case = f"shape={shape}_result={result}_broadcast_dimensions={axes}_{name(dtype)}"

    def broadcast(x):
        sizes = list(result)
        for axis, old, size in zip(axes, shape, x.shape, strict=True):
            if old > 1:
                sizes[axis] = size
        return lax.broadcast_in_dim_p.bind(
            x, shape=tuple(sizes), broadcast_dimensions=axes, sharding=None
        )

    return Harness(
        "broadcast_in_dim",
        case.replace(" ", ""),
        broadcast,
        (random(shape, dtype),),
    )


@harnesses
@symbolic(every_axis)
def transpose():
    for dtype in ALL:
        yield _transpose((2, 3, 4), (2, 0, 1), dtype)
    for shape, permutation in [
        ((), ()),
        ((3,), (0,)),
        ((2, 3), (0, 1)),
        ((2, 3), (1, 0)),
        ((1, 3), (1, 0)),
        ((0, 3), (1, 0)),
        ((2, 3, 4), (0, 2, 1)),
        ((2, 3, 4), (1, 0, 2)),
        ((2, 3, 4), (1, 2, 0)),
        ((2, 3, 4), (2, 1, 0)),
        ((2, 1, 4), (1, 0, 2)),
        ((2, 3, 4, 5), (0, 3, 1, 2)),
        ((2, 3, 4, 5), (3, 2, 1, 0)),
        ((2, 3, 0, 5), (3, 2, 1, 0)),
        (MANY, tuple(reversed(range(10)))),
        ((2,) * 10, (1, 0, 3, 2, 5, 4, 7, 6, 9, 8)),
    ]:
        yield _transpose(shape, permutation)


def _transpose(shape, permutation, dtype=np.float32):
    case = f"shape={shape}_permutation={permutation}_{name(dtype)}"
    return Harness(
        "transpose",
        case.replace(" ", ""),
        lambda x: lax.transpose_p.bind(x, permutation=permutation),
        (random(shape, dtype),),
    )


@harnesses
@symbolic(every_axis)
def squeeze():
    for dtype in ALL:
        yield _squeeze((1, 3, 1), (0, 2), dtype)
    for shape, dimensions in [
        ((1,), (0,)),
        ((1, 1), (0, 1)),
        ((1, 1), (1,)),
        ((1, 2, 1), (0,)),
        ((1, 2, 1), (2,)),
        ((2, 3), ()),
        ((0, 1), (1,)),
        (MANY, (1, 3, 6)),
    ]:
        yield _squeeze(shape, dimensions)


def _squeeze(shape, dimensions, dtype=np.float32):
    case = f"shape={shape}_dimensions={dimensions}_{name(dtype)}"
    return Harness(
        "squeeze",
        case.replace(" ", ""),
        lambda x: lax.squeeze_p.bind(x, dimensions=dimensions),
        (random(shape, dtype),),
    )


@harnesses
@symbolic(every_axis)
def rev():
    for dtype in ALL:
        yield _rev((2, 3, 4), (0, 2), dtype)
    for shape, dimensions in [
        ((), ()),
        ((4,), (0,)),
        ((1,), (0,)),
        ((0, 2), (0, 1)),
        ((2, 3), ()),
        ((2, 3), (1,)),
        ((2, 3, 4), (1,)),
        ((2, 3, 4), (2, 0)),
        ((2, 3, 4), (0, 1, 2)),
        (MANY, (0, 4, 9)),
    ]:
        yield _rev(shape, dimensions)


def _rev(shape, dimensions, dtype=np.float32):
    case = f"shape={shape}_dimensions={dimensions}_{name(dtype)}"
    return Harness(
        "rev",
        case.replace(" ", ""),
        lambda x: lax.rev_p.bind(x, dimensions=dimensions),
        (random(shape, dtype),),
    )


@harnesses
@symbolic(every_axis)
def tile():
    for dtype in ALL:
        yield _tile((2, 3), (2, 3), dtype)
    for shape, reps in [
        ((3,), (1,)),
        ((3,), (0,)),
        ((0,), (3,)),
        ((1, 1), (2, 3)),
        ((2, 3), (1, 4)),
        ((2, 3), (4, 1)),
        ((2, 3, 4), (1, 2, 1)),
        (MANY, (1, 2, 1, 1, 1, 1, 3, 1, 1, 2)),
    ]:
        yield _tile(shape, reps)


def _tile(shape, reps, dtype=np.float32):
    case = f"shape={shape}_reps={reps}_{name(dtype)}"
    return Harness(
        "tile", case.replace(" ", ""), lambda x: lax.tile(x, reps), (random(shape, dtype),)
    )


@harnesses
@symbolic(every_axis)
def broadcast_to():
    bind = jax_compat.cpu_primitive("broadcast_to").bind
    for dtype in (np.bool_, np.float32):
        for shape, sizes in [((1, 3), (2, 3)), ((2, 1), (2, 0)), ((1, 1), (4, 1))]:
            case = f"{shape}_to_{sizes}_{name(dtype)}".replace(" ", "")

            def fun(x, shape=shape, sizes=sizes):
                parts = zip(shape, sizes, x.shape, strict=True)
                return bind(x, shape=tuple(new if old == 1 else n for old, new, n in parts))

            yield Harness("broadcast_to", case, fun, (random(shape, dtype),))
