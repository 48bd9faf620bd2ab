"""Primitives on arrays of six to eight axes, which are more than kernels of some runtimes take.

A harness has small arrays of all these ranks. Axes of one and of more elements alternate where
operands are broadcast, and axes that are reduced, cut or padded are no neighbours, so that few of
them can become one.
"""

import operator

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses.arguments import name, whole
from harnesses.compare import close, exact
from harnesses.harness import Harness

_DTYPES = (np.float32, np.int32)
_RANKS = (6, 7, 8)


def _sizes(rank):
    return (2, 3, 2, 1, 2, 3, 2, 2)[:rank]


def _cases(primitive, fun, dtypes=_DTYPES, count=1, comparer=exact, shapes=None, case="many_axes"):
    """A harness of each dtype; `shapes` are those of the operands of `fun` for a rank."""
    shapes = shapes or (lambda rank: (_sizes(rank),) * count)
    for dtype in dtypes:
        operands = [[whole(shape, dtype) for shape in shapes(rank)] for rank in _RANKS]
        args = tuple(x for of_rank in operands for x in of_rank)
        yield Harness(
            primitive, f"{case}_{name(dtype)}", _of_each(fun, len(operands[0])), args, comparer
        )


def _of_each(fun, count):
    """`fun` of each group of so many arguments."""
    return lambda *args: [fun(*args[i : i + count]) for i in range(0, len(args), count)]


def _every_other(rank):
    """Shapes of two operands that are broadcast along other axes."""
    sizes = [2, 3, 2, 2, 2, 3, 2, 2][:rank]
    x = tuple(n if axis % 2 else 1 for axis, n in enumerate(sizes))
    y = tuple(1 if axis % 2 else n for axis, n in enumerate(sizes))
    return x, y


def elementwise():
    float32, boolean = (np.float32,), (np.bool_,)
    for primitive, fun, dtypes, comparer in (
        ("neg", lax.neg, _DTYPES, exact),
        ("abs", lax.abs, _DTYPES, exact),
        ("sign", lax.sign, _DTYPES, exact),
        ("floor", lax.floor, float32, exact),
        ("tanh", lax.tanh, float32, close(ulps=16)),
        ("is_finite", lax.is_finite, float32, exact),
        ("not", lax.bitwise_not, (np.int32, np.bool_), exact),
    ):
        yield from _cases(primitive, fun, dtypes, comparer=comparer)
    yield from _cases("convert_element_type", lambda x: x.astype(np.int32), float32)
    for primitive, fun, dtypes in (
        ("add", operator.add, _DTYPES),
        ("sub", operator.sub, _DTYPES),
        ("mul", operator.mul, _DTYPES),
        ("max", jnp.maximum, _DTYPES),
        ("lt", operator.lt, _DTYPES),
        ("eq", operator.eq, (*_DTYPES, np.bool_)),
        ("and", operator.and_, boolean),
        ("select_n", lambda x, y: jnp.where(x > 0, x, y), _DTYPES),
    ):
        yield from _cases(primitive, fun, dtypes, shapes=_every_other)


def reductions():
    for primitive, fun in (
        ("reduce_sum", jnp.sum),
        ("reduce_max", jnp.max),
        ("reduce_min", jnp.min),
        ("reduce_prod", jnp.prod),
    ):
        yield from _cases(primitive, _over_axes(fun))
    for primitive, fun in (("reduce_and", jnp.all), ("reduce_or", jnp.any)):
        yield from _cases(primitive, _over_axes(fun), (np.bool_,))
    for primitive, fun in (("argmax", jnp.argmax), ("argmin", jnp.argmin)):
        yield from _cases(primitive, lambda x, fun=fun: [fun(x, 0), fun(x, 4), fun(x, -1)])
    for primitive, fun in (("cumsum", lax.cumsum), ("cumprod", lax.cumprod)):
        yield from _cases(primitive, lambda x, fun=fun: [fun(x, 0), fun(x, 4), fun(x, x.ndim - 1)])


def _over_axes(fun):
    """A reduction over one axis, over all, and over every other one."""

    def reduce(x):
        axes = [2, -1, None, (0, 2, 4), tuple(range(1, x.ndim, 2))]
        return [fun(x, axis) for axis in axes] + [fun(x, (1, 4), keepdims=True)]

    return reduce


def structural():
    three = (*_DTYPES, np.bool_)
    for primitive, fun, dtypes in (
        ("transpose", lambda x: [x.T, jnp.moveaxis(x, 1, -2)], three),
        ("slice", lambda x: [x[:, 1:, :1, ..., :1], x[::2, ::2, ..., ::2]], three),
        ("pad", lambda x: [lax.pad(x, x.dtype.type(1), _edges(x.ndim)), jnp.pad(x, 1)], _DTYPES),
        ("rev", lambda x: [lax.rev(x, (1,)), lax.rev(x, (0, 4, x.ndim - 1))], three),
        ("tile", lambda x: jnp.tile(x, 2), _DTYPES),
        ("broadcast_in_dim", lambda x: jnp.broadcast_to(x, (2, *x.shape)), _DTYPES),
        ("squeeze", lambda x: jnp.squeeze(x, 3), _DTYPES),
        ("split", lambda x: jnp.split(x, 2, 4), _DTYPES),
        ("reshape", lambda x: x.reshape(*x.shape[1:], x.shape[0]), _DTYPES),
        ("sort", lambda x: [jnp.sort(x, 1), jnp.sort(x, -1)], _DTYPES),
        ("top_k", lambda x: lax.top_k(x, 2), _DTYPES),
    ):
        yield from _cases(primitive, fun, dtypes)
    yield from _cases("concatenate", lambda x, y: jnp.concatenate([x, y], 4), three, 2)
    for primitive, fun in (
        ("gather", lambda x: [x[:, np.array([2, 0, 1])], x[np.array([1, 0]), :, np.array([0, 1])]]),
        ("scatter", lambda x: x.at[:, np.array([2, 0])].set(x.dtype.type(7))),
        ("scatter-add", lambda x: x.at[:, np.array([2, 2])].add(x.dtype.type(7))),
        ("dynamic_slice", lambda x: _from_element(lax.dynamic_slice_in_dim, x, 1)),
        ("dynamic_update_slice", lambda x: _from_element(lax.dynamic_update_slice_in_dim, x, x)),
    ):
        yield from _cases(primitive, fun)


def _edges(rank):
    return [(axis % 2, axis // 4, axis % 3 // 2) for axis in range(rank)]


def _from_element(fun, x, given):
    """A slice, or its update, along an axis from a place that an element of `x` says."""
    start = jnp.clip(x.ravel()[0].astype(np.int32), 0, 1)
    return fun(x, start, given, 1) if given is not x else fun(x, x[:, :2], start, 1)


def contractions():
    """Batches of matrices, products with one matrix, and products that contract nothing."""
    for case, fun, shapes in (
        ("batches", jnp.matmul, lambda *n: ((*n, 3, 5), (*n, 5, 2))),
        ("odd_batches", jnp.matmul, lambda *n: ((*n, 3, 3), (*n, 3, 3))),
        ("transposed", _of_columns, lambda *n: ((*n, 5, 3), (*n, 2, 5))),
        ("vectors", jnp.vecdot, lambda *n: ((*n, 2, 5), (*n, 2, 5))),
        ("one_matrix", jnp.matmul, lambda *n: ((*n, 3, 5), (5, 2))),
        ("two_axes", _tensordot(2), lambda *n: ((*n, 3, 5), (3, 5, 2))),
        ("no_axes", _tensordot(0), lambda *n: ((*n[:3],), (*n[3:], 3, 2))),
    ):

        def of_rank(rank, shapes=shapes):
            return shapes(*_sizes(rank - 2))

        yield from _cases("dot_general", fun, shapes=of_rank, case=f"many_axes_{case}")


def _of_columns(x, y):
    return jnp.einsum("...ji,...kj->...ik", x, y)


def _tensordot(axes):
    return lambda x, y: jnp.tensordot(x, y, axes)


def softmax():
    def functions(x):
        return [jax.nn.softmax(x), jax.nn.softmax(x, 2), jax.nn.log_softmax(x)]

    near = close(ulps=32, atol=1e-6)
    yield from _cases("div", functions, (np.float32,), comparer=near, case="many_axes_softmax")


CASES = {
    harness.name: harness
    for family in (elementwise, reductions, structural, contractions, softmax)
    for harness in family()
}
