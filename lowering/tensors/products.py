"""Products of matrices in the op that a target takes.

TF Lite's converter takes some products for others, or joins them with what stands before them; the
quirks of `lowering.targets.tflite` say when.
"""

import functools

import numpy as np
import tensorflow as tf

from lowering.ops import constant, emit, even, memo, move, tuning, values
from lowering.ops.constants import is_passed_to_branch, is_weight
from lowering.targets.tfjs import quirks as tfjs
from lowering.targets.tflite import quirks as tflite
from lowering.targets.tflite import runtime_quirks
from lowering.tensors import limbs, movement


def matmul(ctx, x, y, adj_x, adj_y):
    """The product of matrices, or of batches of them, by an op that no converter mistakes.

    Args:
      x: a tensor of shape (..., m, k), or (..., k, m) with `adj_x`.
      y: a tensor of shape (..., k, n), or (..., n, k) with `adj_y`, of the same dtype.
      adj_x: whether the last axes of `x` are swapped.
      adj_y: whether those of `y` are.

    Returns:
      A tensor of shape (..., m, n).
    """
    if adj_y and _is_known_row(ctx, x, adj_x):
        row = _swapped(ctx, x) if adj_x else x
        sums = emit("Sum", emit("Mul", row, y), constant(-1, np.int32))
        return move("ExpandDims", sums, constant(-2, np.int32))
    if x.dtype == tf.int32 and ctx.target.exact_integer_bits < 32:
        # Matrices are multiplied in float32.
        floats = functools.partial(matmul, ctx, adj_x=adj_x, adj_y=adj_y)
        return limbs.product(x, y, floats, x.shape[-2 if adj_x else -1])
    if _is_joined_with_reshapes(ctx, x, y, adj_x) or _is_mistaken(ctx, x, y):
        x, y = (move("ExpandDims", z, constant(0, np.int32)) for z in (x, y))
        product = emit("BatchMatMulV2", x, y, adj_x=adj_x, adj_y=adj_y)
        return move("Squeeze", product, axis=[0])
    x, y = even.contracted(x, y, -2 if adj_x else -1, -1 if adj_y else -2)
    if x.shape.rank == y.shape.rank == 2:
        return emit("MatMul", x, y, transpose_a=adj_x, transpose_b=adj_y)
    if x.dtype.is_complex:
        # Its flags would take the conjugate.
        x, y = _swapped(ctx, x) if adj_x else x, _swapped(ctx, y) if adj_y else y
        adj_x = adj_y = False
    if tuning.multiplies_by_eigen(ctx.target, x, y, adj_y):
        return tf.raw_ops.BatchMatMulV3(x=x, y=y, adj_x=adj_x, adj_y=adj_y, Tout=x.dtype)
    return emit("BatchMatMulV2", x, y, adj_x=adj_x, adj_y=adj_y)


def _is_known_row(ctx, x, adj_x):
    """Whether a matrix is a row of constants, which may be ones; see `tflite.quirks.rows_of_ones`.

    The converter would take out a transpose of the other matrix, so that it is of no use.
    """
    has_quirk = ctx.target.has(tflite.rows_of_ones)
    return has_quirk and x.shape[-1 if adj_x else -2] == 1 and is_weight(x)


def _is_joined_with_reshapes(ctx, x, y, adj_x):
    """Whether a converter would make a product of matrices one of more axes than it has.

    See `tflite.quirks.products_joined_with_reshapes` and
    `tflite.runtime_quirks.products_of_many_axes`.
    """
    if x.shape.rank != 2 or not ctx.target.has(tflite.products_joined_with_reshapes):
        return False
    rank = values.unshaped(x).shape.rank
    if _is_of_reshaped_rows(x, adj_x):
        return True
    if is_weight(y) and not is_passed_to_branch(y):
        # The converter may move other ops from between, so that any array of the program counts.
        return max(rank, ctx.lowering.highest_rank) > runtime_quirks.MOST_AXES_OF_PRODUCTS
    return 1 in x.shape or rank > most_axes(ctx)


def _is_mistaken(ctx, x, y):
    """Whether a converter takes a product for one that it is not.

    See `tflite.quirks.lookups_out_of_bounds` and `tflite.quirks.products_of_transposed_batches`.
    """
    has_room = max(x.shape.rank, y.shape.rank) < most_axes(ctx)
    if not (has_room and ctx.target.has(tflite.lookups_out_of_bounds)):
        return False
    return _may_be_one_hot(x) or _is_of_transposed_batches(y)


def _may_be_one_hot(x):
    """Whether the rows of a matrix are comparisons with constants, which may be positions."""
    compared = values.operand_of(values.unshaped(x), "Cast")
    equal = None if compared is None else values.source(values.unshaped(compared))
    return equal is not None and equal.type == "Equal" and any(map(is_weight, equal.inputs))


def _is_of_transposed_batches(y):
    """Whether matrices may be those of a transposed array whose first axes are one now."""
    if not tf.is_symbolic_tensor(y):
        return False
    *batch, rows, columns = y.shape.as_list()
    shapes = memo.collected(y.graph, "transposed batches", _shape_of_transposed_batches)
    return not shapes.isdisjoint({(*batch, rows, columns), (*batch, columns, rows)})


def _shape_of_transposed_batches(op):
    """The shape of an array whose last two axes become its first, once these are one."""
    if op.type != "Transpose" or not op.outputs[0].shape.is_fully_defined():
        return None
    first, second, *others = op.outputs[0].shape.as_list() or [0, 0]
    order = tf.get_static_value(op.inputs[1])
    if len(others) < 2 or order is None or list(order[2:]) != list(range(len(others))):
        return None
    return first * second, *others


def _is_of_reshaped_rows(x, adj_x):
    """Whether the contracted axis of a matrix may be several of an array, which is reshaped.

    The converter does not ask which axis is contracted, and moves elementwise ops from between.
    """
    if not tf.is_symbolic_tensor(x):
        return False
    shapes = memo.collected(x.graph, "reshaped rows", _shape_of_reshaped_rows)
    if adj_x:
        return tuple(x.shape) in shapes
    has_transposes = memo.has_op(x.graph, "Transpose")
    return has_transposes and tuple(x.shape)[::-1] in shapes


def _shape_of_reshaped_rows(op):
    """The shape of a matrix that is made of the rows of an array of more axes."""
    if op.type != "Reshape" or op.outputs[0].shape.rank != 2:
        return None
    before, after = op.inputs[0].shape, op.outputs[0].shape
    is_of_rows = (before.rank or 0) > 2 and before[-1] == after[-1]
    return tuple(after) if is_of_rows else None


def _swapped(ctx, x):
    *batch, rows, columns = range(x.shape.rank)
    return movement.transpose(ctx, x, [*batch, columns, rows])


def most_axes(ctx):
    """The highest rank of an operand, whose odd axes may be padded."""
    highest = ctx.target.max_rank("BatchMatMulV2")
    is_padded = ctx.target.has(tfjs.products_of_odd_sizes)
    return min(highest, ctx.target.max_rank("PadV2")) if is_padded else highest
