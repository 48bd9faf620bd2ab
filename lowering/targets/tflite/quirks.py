"""What TensorFlow's converter to TF Lite gets wrong, or refuses though documented."""

from typing import Any

import numpy as np

from lowering.targets.quirk import quirks_of, tf
from lowering.targets.tflite.reproduction import converter_of, fails, run

_quirk = quirks_of("tflite", {"tensorflow": "2.21.0", "ai-edge-litert": "2.3.0"})
_SOURCES = "https://github.com/tensorflow/tensorflow/blob"
_PASSES = "tensorflow/compiler/mlir/lite/transforms"
_PATTERNS = f"{_SOURCES}/01275c645e5b03621d995359797421aac6e84c76/{_PASSES}/optimize_patterns.td"
_OPTIMIZE = f"{_SOURCES}/b4daa7600fcc197d65f628317f2f303c8f54753d/{_PASSES}/optimize_pass.cc"
_BATCH_MATMUL = (
    f"{_SOURCES}/b4daa7600fcc197d65f628317f2f303c8f54753d/{_PASSES}/optimize_batch_matmul_pass.cc"
)
_TRANSPOSES = (
    f"{_SOURCES}/354a956897c5fe6174ccec2fc93ba9fa5c629f47/{_PASSES}"
    "/push_transpose_through_ewise_pass.cc"
)
_BROADCASTS = (
    f"{_SOURCES}/14f3ab74724161389e3cc82aff538e4609fefd3b/{_PASSES}"
    "/optimize_broadcast_like_patterns.td"
)

_MATRIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@_quirk(_TRANSPOSES, "lowering.ops.swapped.may_swap")
def swapped_operands() -> bool:
    """A constant less a transpose becomes the transpose of the operand less the constant.

    The converter moves a transpose past an op whose other operand is constant, and makes the
    constant the second operand of the new op, though it was the first one. It does so only with a
    scalar, or with as many axes as the transposed operand has. The transpose may stand before
    other ops, past which it is moved, or come from the converter itself.
    """
    return not np.array_equal(run(lambda x: 10.0 - tf.transpose(x), _MATRIX), 10 - _MATRIX.T)


@_quirk(_OPTIMIZE, "lowering.ops.casts.widened")
def casts_behind_gathers() -> bool:
    """A cast before a gather is moved behind it, which has no kernel for the narrower dtype."""

    def fun(x: Any) -> Any:
        return tf.gather(tf.cast(x, tf.int32), [1, 0])

    return fails("'tfl.gather' op operand #0 must be", fun, np.arange(4, dtype=np.uint16))


@_quirk(_OPTIMIZE, "lowering.ops.casts.narrowed")
def broadcasts_behind_casts() -> bool:
    """A broadcast before a cast is moved behind it, and has no kernel for the narrower dtype.

    It is moved behind any ops whose operands are all broadcast.
    """

    def fun(x: Any) -> Any:
        return tf.cast(tf.broadcast_to(x, [3, 4]), tf.uint16)

    return fails("'tfl.broadcast_to' op operand #0 must be", fun, np.arange(4, dtype=np.int32))


@_quirk(_BROADCASTS, "lowering.rules.reductions._positions")
def sums_before_broadcasts() -> bool:
    """A sum of a broadcast becomes the broadcast of a sum, over axes of the broadcast.

    If the operand of the broadcast has fewer axes, these are others. The converter moves the
    broadcast past elementwise ops, too. Axes that are counted from the last one are the same.
    """
    found = run(lambda x: tf.reduce_sum(tf.broadcast_to(x, [2, 2, 3]), [0]), _MATRIX)
    return not np.array_equal(found, 2 * _MATRIX)


@_quirk(_PATTERNS, "lowering.ops.constant_shapes.with_other_shapes")
def numbers_as_biases() -> bool:
    """A number that is added to a transposed convolution becomes its bias, of one feature only.

    LiteRT reads the other features from memory that belongs to something else.
    """
    x, weights = np.ones((1, 2, 2, 1), np.float32), np.ones((1, 1, 3, 1), np.float32)

    def fun(x: Any) -> Any:
        y = tf.nn.conv2d_transpose(x, weights, [1, 2, 2, 3], 1, "SAME")
        return y + 0.5

    return not np.array_equal(run(fun, x), np.full((1, 2, 2, 3), 1.5))


@_quirk(_OPTIMIZE, "lowering.ops.constant_shapes.with_other_shapes")
def rows_added_to_columns() -> bool:
    """A row that is added to a column before a product with weights is added behind it.

    What is left is a product of matrices that do not fit.
    """
    row, weights, bias = np.ones(3, np.float32), np.ones((3, 2), np.float32), np.ones(2, np.float32)
    what = "'tfl.fully_connected' op"
    return fails(what, lambda x: tf.matmul(x + row, weights) + bias, np.ones((2, 1), np.float32))


@_quirk(_PATTERNS, "lowering.ops.constant_shapes.with_other_shapes")
def activations_of_fewer_axes() -> bool:
    """A minimum with an array of one number becomes an activation of another shape."""
    sixes = np.full((2, 3), 6, np.float32)
    return fails("", lambda x: tf.minimum(tf.nn.relu(x), sixes), np.ones(3, np.float32))


@_quirk(_PATTERNS, "lowering.rules.argmax._is_of_softmax")
def positions_before_softmax() -> bool:
    """The greatest or least of a softmax is looked for before it, where equal results differ."""
    x = np.array([[-200, -300, 0]], np.float32)
    return run(lambda x: tf.argmin(tf.nn.softmax(x), 1, tf.int32), x)[0] != 0


@_quirk(_PATTERNS, "lowering.tensors.movement._is_taken_for_untransposed")
def transposes_to_the_same_shape() -> bool:
    """A transpose of a reshaped transpose is left out if the shapes at both ends are the same.

    An axis of size one has to fall away between, and elementwise ops may stand there.
    """
    x = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3)

    def fun(x: Any) -> Any:
        y = tf.reshape(tf.transpose(x, [0, 2, 3, 1]), [3, 3, 3])
        return tf.transpose(y, [1, 0, 2])

    return not np.array_equal(run(fun, x), x[0].transpose(1, 2, 0).transpose(1, 0, 2))


@_quirk(_OPTIMIZE, "lowering.tensors.products._is_mistaken")
def products_of_transposed_batches() -> bool:
    """A product with transposed matrices, whose axes of batches are reshaped, takes other axes."""
    x, y = np.ones((4, 1, 2), np.float32), np.ones((2, 3, 2, 2), np.float32)

    def fun(x: Any, y: Any) -> Any:
        return tf.matmul(x, tf.reshape(tf.transpose(y, [2, 3, 0, 1]), [4, 2, 3]))

    return fails("'tfl.batch_matmul' op", fun, x, y)


@_quirk(_PATTERNS, "lowering.ops.decided.place_of_zero")
def zeros_like_bools() -> bool:
    """A comparison that is decided, as bools are cast to 0 or 1, becomes ZerosLike of the bools.

    It has a kernel for numbers only.
    """
    return fails("'tfl.zeros_like' op operand #0", lambda x: tf.cast(x, tf.int32) < 0, _MATRIX > 0)


@_quirk(_PATTERNS, "lowering.ops.optimizer.emitted")
def negated_comparisons() -> bool:
    """The negation of a comparison becomes the opposite comparison, which differs at NaN."""
    nan = np.array([np.nan], np.float32)
    return not run(lambda x: tf.logical_not(x > 0), nan)[0]


@_quirk(
    f"{_SOURCES}/00dc34ee5554514ccd8512bd7cbbc8bd1fe5f105/tensorflow/lite/kernels/while.cc",
    "lowering.tensors.loops._copied",
)
def overwritten_values_of_loops() -> bool:
    """A value of a loop is overwritten by its successor before that of another is read from it."""

    def fun(x: Any, y: Any) -> Any:
        swapped = tf.while_loop(lambda i, a, b: i < 3, lambda i, a, b: (i + 1, b, a), (0, x, y))
        return tf.stack(swapped[1:])

    return not np.array_equal(run(fun, np.array(1, np.float32), np.array(2, np.float32)), [2, 1])


@_quirk(_OPTIMIZE, "lowering.tensors.movement._may_be_reordered")
def reshapes_before_transposes() -> bool:
    """A reshape of a transposed matrix is done before the transpose, with -1 taken for a size.

    It happens if another transpose follows. The matrix may be transposed by the converter itself.
    """

    def fun(x: Any) -> Any:
        return tf.transpose(tf.reshape(tf.transpose(x), [3, 2, -1]), [1, 2, 0])

    spec = tf.TensorSpec([None, 3], tf.float32)
    what = "doesn't match function result type"
    return fails(what, fun, np.ones((4, 3), np.float32), specs=[spec])


@_quirk(_OPTIMIZE, "lowering.ops.activations.with_more_axes")
def activations_of_products() -> bool:
    """The activation of a product of two matrices that are computed is lost.

    It becomes a part of FullyConnected, in whose place BatchMatMul comes, which has none.
    """
    y = np.ones((3, 2), np.float32)
    found = run(lambda x, y: tf.nn.relu(tf.matmul(x, y)), -_MATRIX, y)
    return bool(np.any(np.asarray(found) < 0))


@_quirk(_OPTIMIZE, "lowering.tensors.products._is_joined_with_reshapes")
def products_joined_with_reshapes() -> bool:
    """A product is joined with reshapes before and after it, to one of ranks that it lacks."""

    def fun(x: Any, y: Any) -> Any:
        return tf.reshape(tf.matmul(tf.reshape(x, [1, 4]), y), [5])

    x, y = np.ones(4, np.float32), np.ones((4, 5), np.float32)
    return fails("'tfl.batch_matmul' op failed to verify", fun, x, y)


@_quirk(_BATCH_MATMUL, "lowering.tensors.products._is_known_row")
def rows_of_ones() -> bool:
    """A product of a row of ones with a transposed matrix becomes a sum over the wrong axis."""
    ones = np.ones((1, 1, 3), np.float32)
    found = run(lambda y: tf.matmul(ones, y, transpose_b=True), _MATRIX[None])
    return found.shape != (1, 1, 2)


@_quirk(
    f"{_SOURCES}/c3bd2f4bcdcf440cb6bbc3d88cef3f3bc56dbb70/{_PASSES}/prepare_tf.cc",
    "lowering.rules.conv_general_dilated._kernel",
)
def unknown_features_of_convolutions() -> bool:
    """A convolution of a number of features that is not known is not converted."""
    specs = [tf.TensorSpec([1, 4, 4, 2]), tf.TensorSpec([2, 2, 2, None])]
    x, weights = np.ones((1, 4, 4, 2), np.float32), np.ones((2, 2, 2, 3), np.float32)
    return fails(
        "'tf.Conv2D' op is neither",
        lambda x, w: tf.nn.conv2d(x, w, 1, "VALID"),
        x,
        weights,
        specs=specs,
    )


@_quirk(
    f"{_SOURCES}/1d7abe5b9ab6c716dab4faab10041a9ac97ea300/tensorflow/compiler/mlir/lite/ir/tfl_ops.td",
    "lowering.rules.binary.atan2_tflite",
)
def atan2_without_broadcast() -> bool:
    """Atan2 does not broadcast its operands."""
    return fails("'tfl.atan2' op requires the same type", tf.atan2, _MATRIX, _MATRIX[0])


@_quirk(
    f"{_SOURCES}/31c1b6f794568a15a1861dbe646eaa9d3064d7ca/{_PASSES}/prepare_quantize.cc",
    "lowering.rules.unary.square_tflite",
)
def squares_in_floats() -> bool:
    """A square is not quantized, but computed in floats between integers."""
    from ai_edge_litert.interpreter import Interpreter

    x = np.linspace(-1, 1, 8, dtype=np.float32)
    converter = converter_of(lambda x: tf.exp(x) * tf.square(x), [tf.TensorSpec(x.shape)])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: [[x]]
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    interpreter = Interpreter(model_content=converter.convert())
    (square,) = [op for op in interpreter._get_ops_details() if op["op_name"] == "SQUARE"]
    return interpreter._get_tensor_details(square["outputs"][0], 0)["dtype"] == np.float32


@_quirk(
    f"{_SOURCES}/9edafd57ae289533e12f51117a82c8d869262637/{_PASSES}"
    "/push_transpose_through_ewise_pass.cc",
    "lowering.export.transposes.keep_transposes",
)
def transposes_around_loops() -> bool:
    """A constant of a transpose that is moved into a loop is out of reach for the others.

    The converter moves transposes past elementwise ops, and the constant of the permutation with
    them. It inlines the body of a loop, whose ops then share constants with those around it.
    """

    def turn(x: Any) -> Any:
        return tf.cumsum(tf.transpose(tf.tanh(x)))

    def fun(x: Any, y: Any) -> Any:
        z = tf.while_loop(lambda i, _: i < 3, lambda i, x: (i + 1, turn(x)), (0, x))[1]
        return z + tf.transpose(tf.cumsum(y))

    x = np.ones((4, 4), np.float32)
    return fails("operand #1 does not dominate this use", fun, x, x)


@_quirk(
    f"{_SOURCES}/b1fb6997953ff50b59faf79af9183f94475cf762/{_PASSES}"
    "/canonicalize_boundary_value_pass.cc",
    "lowering.export.tflite_converter.keep_infinities",
)
def finite_infinities() -> bool:
    """By default an infinite constant becomes the largest finite number."""
    from ai_edge_litert.interpreter import Interpreter

    converter = converter_of(lambda x: tf.where(x > 0, x, np.inf), [tf.TensorSpec([1])])
    converter.canonicalizing_inf_as_min_max_float = True
    runner = Interpreter(model_content=converter.convert()).get_signature_runner()
    (result,) = runner(x=np.zeros(1, np.float32)).values()
    return bool(np.isfinite(result[0]))


@_quirk(
    _PATTERNS,
    ("lowering.passes.fusion.index_ops.with_index_ops", "lowering.tensors.products._is_mistaken"),
)
def lookups_out_of_bounds() -> bool:
    """Products with one-hot vectors become lookups, which refuse indices without a one."""

    def fun(index: Any) -> Any:
        return tf.matmul(tf.one_hot(index, 2), _MATRIX)

    return fails("index out of bounds", fun, np.array([1, 2], np.int32))
