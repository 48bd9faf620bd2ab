"""Substitutes of ops that select, move and scatter elements."""

import functools

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops import even, kernels, memo
from lowering.ops.constants import constant, integers, vector
from lowering.ops.emission import cast, emit, substitute
from lowering.targets.tfjs import quirks


@substitute("SelectV2")
def _select(condition, x, y):
    """A choice between booleans, for runtimes that choose between numbers alone."""
    chosen = emit("LogicalAnd", condition, x)
    return emit("LogicalOr", chosen, emit("LogicalAnd", emit("LogicalNot", condition), y))


@substitute("PadV2")
def _pad(x, paddings, padding):
    """For runtimes that take the padding as a float32; other numbers are added afterwards."""
    number = tf.get_static_value(padding)
    if number is not None and np.float32(number) == number:
        return emit("PadV2", x, paddings, padding)
    padded = emit("PadV2", emit("Sub", x, padding), paddings, constant(0, x.dtype))
    return emit("AddV2", padded, padding)


@substitute("StridedSlice")
def _strided_slice(x, begin, end, strides, end_mask=0):
    """Gathers the elements along each axis."""
    bounds = zip(
        *(_numbers(operand, x.shape.rank) for operand in (begin, end, strides)), strict=True
    )
    for axis, (size, (start, limit, stride)) in enumerate(zip(_dims(x), bounds, strict=True)):
        if end_mask >> axis & 1:
            limit = size
            if (start, stride) == (0, 1):
                continue
        if all(isinstance(n, int) for n in (start, limit, stride)):
            indices = constant(np.arange(start, limit, stride), np.int32)
        else:
            indices = emit("Range", *map(_scalar, (start, limit, stride)))
        x = emit("GatherV2", x, indices, constant(axis, np.int32))
    return x


def _numbers(x, count):
    """The elements of a vector: ints, or scalars of the graph."""
    known = tf.get_static_value(x)
    if known is not None:
        return known.tolist()
    return [_element(x, i) for i in range(count)]


def _element(x, i):
    return emit("GatherV2", x, constant(i, np.int32), constant(0, np.int32))


@substitute("TensorScatterUpdate")
def _tensor_scatter_update(tensor, index, updates, **_):
    """Scatters the numbers of the updates, and then chooses each element or its update."""
    depth = index.shape[-1]
    places, sizes = _dims(index)[:-1], (*_dims(tensor)[:depth], *[1] * (tensor.shape.rank - depth))
    count = functools.reduce(_product, places, 1)
    choice = functools.partial(_choice, index, places, count, sizes)
    if tf.is_symbolic_tensor(index) and all(isinstance(n, int) for n in sizes):
        # Loops write to several arrays at one place.
        is_updated, place = memo.once(("choice", id(index), sizes), choice, index)
    else:
        is_updated, place = choice()
    rows = updates
    if index.shape.rank != 2:
        rows = emit("Reshape", updates, vector([count, *_dims(updates)[index.shape.rank - 1 :]]))
    rows = emit("GatherV2", rows, place, constant(0, tf.int32))
    return emit("SelectV2", is_updated, rows, tensor)


def _choice(index, places, count, sizes):
    """Which elements are updated, and the number of the update of each."""
    depth = index.shape[-1]
    zero, one = constant(0, tf.int32), constant(1, tf.int32)
    if isinstance(count, int):
        numbers = constant(np.arange(1, count + 1).reshape(places), tf.int32)
        last = constant(count - 1, tf.int32)
    else:
        numbers = emit("Range", one, emit("AddV2", count, one), one)
        numbers = emit("Reshape", numbers, vector(places))
        last = emit("Sub", count, one)
    number = _scattered(index, numbers, cast(vector(sizes[:depth]), index.dtype))
    # Kernels that add the numbers of elements with several updates may exceed the last one.
    place = emit("Minimum", emit("Maximum", emit("Sub", number, one), zero), last)
    return emit("Reshape", emit("Greater", number, zero), vector(sizes)), place


@substitute("TensorScatterAdd")
def _tensor_scatter_add(tensor, index, updates, **_):
    """The sum of the updates of each element, added to it."""
    total = _scattered(index, updates, shape_of(tensor, index.dtype))
    return emit("AddV2", tensor, total)


@substitute("TensorScatterSub")
def _tensor_scatter_sub(tensor, index, updates, **_):
    total = _scattered(index, updates, shape_of(tensor, index.dtype))
    return emit("Sub", tensor, total)


def _scattered(index, updates, shape):
    """The sum of the updates of each element, and zero without any."""
    if targets.current().has(quirks.scatters_of_odd_sizes):
        depth = index.shape[-1]
        count = functools.reduce(_product, _dims(index)[:-1], 1)
        row = _dims(updates)[index.shape.rank - 1 :]
        if not isinstance(count, int) or count % 2:
            index = even.padded(emit("Reshape", index, vector([count, depth])), 0)
            updates = even.padded(emit("Reshape", updates, vector([count, *row])), 0)
    return emit("ScatterNd", index, updates, shape)


def shape_of(tensor: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The shape of a tensor, as integers of a dtype."""
    known = tensor.shape.as_list()
    if None not in known:
        return constant(np.array(known), dtype)
    return cast(tf.shape(tensor), dtype)


@substitute(kernels.BATCHED_GATHER)
def _gather_batches(x, indices, axis, batch_dims):
    """Joins the batches to one axis, and gathers elements of that."""
    axis, count = int(tf.get_static_value(axis)), x.shape.rank
    if axis > batch_dims:
        order = [*range(batch_dims), axis, *range(batch_dims, axis), *range(axis + 1, count)]
        first = constant(batch_dims, np.int32)
        y = _gather_batches(emit("Transpose", x, integers(order)), indices, first, batch_dims)
        end = indices.shape.rank
        before = [end + i for i in range(axis - batch_dims)]
        after = range(end + len(before), y.shape.rank)
        order = [*range(batch_dims), *before, *range(batch_dims, end), *after]
        return emit("Transpose", y, integers(order))
    sizes, positions = _dims(x), _dims(indices)
    batches, size, rest = sizes[:axis], sizes[axis], sizes[axis + 1 :]
    total = functools.reduce(_product, batches, size)
    starts = emit("Range", *(_scalar(n) for n in (0, total, size)))
    starts = emit("Reshape", starts, vector(batches + [1] * (len(positions) - axis)))
    joined = emit("Reshape", x, vector([total, *rest]))
    places = emit("AddV2", cast(indices, tf.int32), starts)
    return emit("GatherV2", joined, places, constant(0, np.int32))


def _dims(x):
    """The sizes of axes: ints, or scalars of the graph where they are symbolic."""
    if None not in x.shape.as_list():
        return x.shape.as_list()
    found = emit("Shape", x)
    return [_element(found, i) if n is None else n for i, n in enumerate(x.shape.as_list())]


def _product(a, b):
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    return emit("Mul", _scalar(a), _scalar(b))


def _scalar(size):
    return constant(size, np.int32) if isinstance(size, int) else size
