"""Reductions with an arbitrary function."""

import numpy as np
from jax import lax

from harnesses.arguments import ALL, INTEGER, full_range, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close, exact
from harnesses.harness import Harness, harnesses


def _reduce(computation, inits, dimensions):
    return lambda *operands: lax.reduce(operands, inits, computation, dimensions)


@harnesses
@symbolic(every_axis)
def reduce_one_operand():
    def first_nonzero(x, y):
        (x,), (y,) = x, y
        return (lax.select(lax.ne(x, np.zeros((), x.dtype)), x, y),)

    def add_more(x, y):
        (x,), (y,) = x, y
        return (x + y + x * y,)

    for dtype in ALL:
        # The function is associative, but not commutative.
        x = random((3, 11, 2), dtype, -1, 3)
        init = (np.zeros((), dtype),)
        dimensions = (1,) if np.dtype(dtype).itemsize < 4 else (0, 2)
        yield Harness(
            "reduce",
            f"first_nonzero_dimensions={dimensions}_{name(dtype)}",
            _reduce(first_nonzero, init, dimensions),
            (x,),
        )
    for dtype in (*INTEGER, np.float32, np.complex64):
        x = full_range((5, 6), dtype) if dtype in INTEGER else random((5, 6), dtype, 0, 0.5)
        yield Harness(
            "reduce",
            f"add_more_{name(dtype)}",
            _reduce(add_more, (np.array(3, dtype),), (0,)),
            (x,),
            exact if dtype in INTEGER else close(ulps=16),
        )
    for shape, dimensions in (
        ((), ()),
        ((4,), ()),
        ((0,), (0,)),
        ((1,), (0,)),
        ((2, 0, 3), (1,)),
        ((2, 0, 3), (0, 1)),
        ((2, 3, 5), (0, 1, 2)),
        ((2, 3, 5), (2, 0)),
        ((129,), (0,)),
    ):
        yield Harness(
            "reduce",
            f"shape={shape}_dimensions={dimensions}",
            _reduce(add_more, (np.int32(7),), dimensions),
            (random(shape, np.int32),),
        )


@harnesses
@symbolic(every_axis)
def reduce_with_an_init():
    """Yields harnesses with a function that has a primitive, and an init that is not neutral."""
    for fun, dtype, init in (
        (lax.add, np.float32, 5),
        (lax.add, np.int8, 100),
        (lax.mul, np.int32, 3),
        (lax.max, np.float32, 1),
        (lax.min, np.uint8, 2),
        (lax.bitwise_and, np.int32, 6),
        (lax.bitwise_or, np.uint16, 8),
        (lax.bitwise_xor, np.int64, -5),
        (lax.bitwise_or, np.bool_, True),
    ):
        x = random((4, 3), dtype)
        # Sums that nearly cancel have the rounding errors of their terms, which are below 8.
        rounding = 8 * float(np.finfo(np.float32).eps) if fun is lax.add else 0
        yield Harness(
            "reduce",
            f"{fun.__name__}_{name(dtype)}",
            lambda x, fun=fun, init=init: lax.reduce(x, np.array(init, x.dtype), fun, (1,)),
            (x,),
            close(ulps=4, atol=rounding),
        )


@harnesses
@symbolic(every_axis)
def reduce_several_operands():
    def argmax(x, y):
        value, index = zip(x, y)
        first = (value[0] > value[1]) | ((value[0] == value[1]) & (index[0] < index[1]))
        return lax.select(first, *value), lax.select(first, *index)

    for dimensions in ((0,), (1,), (0, 1)):
        yield Harness(
            "reduce",
            f"argmax_dimensions={dimensions}",
            _reduce(argmax, (np.float32(-np.inf), np.int32(-1)), dimensions),
            (random((7, 5), np.float32), np.arange(35, dtype=np.int32).reshape(7, 5)),
        )

    def matmul(x, y):
        """Returns the product of 2x2 matrices, each given as its four elements."""
        (a, b, c, d), (e, f, g, h) = x, y
        return a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h

    inits = tuple(np.uint32(i) for i in (1, 0, 0, 1))
    yield Harness(
        "reduce",
        "matrices",
        _reduce(matmul, inits, (0,)),
        tuple(full_range((13, 2), np.uint32) for _ in range(4)),
    )
    yield Harness(
        "reduce",
        "matrices_two_dimensions",
        _reduce(matmul, inits, (0, 1)),
        tuple(full_range((3, 5), np.uint32) for _ in range(4)),
    )
    yield Harness(
        "reduce",
        "traced_init",
        lambda x, init: lax.reduce(x, init, lambda a, b: a * b + a + b, (0,)),
        (random((6,), np.int32), np.int32(2)),
    )
