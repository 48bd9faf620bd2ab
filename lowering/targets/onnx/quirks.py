"""What tf2onnx and onnxruntime get wrong, or refuse though they document it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lowering.targets.quirk import quirks_of

_quirk = quirks_of("onnx", {"tf2onnx": "1.17.0", "onnxruntime": "1.32.0"})
_TF2ONNX = "https://github.com/onnx/tensorflow-onnx/blob"
_OPS = "tf2onnx/onnx_opset"
_MATH = f"{_TF2ONNX}/d8b100992b81f9afd656b540835b6f2641c08eec/{_OPS}/math.py"
_TENSOR = f"{_TF2ONNX}/8d5a45c5434d589aa17a77a50b0b5de77ae4b23a/{_OPS}/tensor.py"


def _model(fun: Callable[..., Any], specs: Sequence[Any], opset: int) -> bytes:
    """A function of TensorFlow as tf2onnx converts it."""
    import tensorflow as tf
    import tf2onnx

    function = tf.function(fun, input_signature=specs, autograph=False)
    return tf2onnx.convert.from_function(function, specs, opset=opset)[0].SerializeToString()


def _run(
    fun: Callable[..., Any], *arrays: np.ndarray, specs: Sequence[Any] = (), opset: int = 18
) -> np.ndarray:
    """The result of a function of TensorFlow in onnxruntime."""
    import onnxruntime
    import tensorflow as tf

    specs = specs or [tf.TensorSpec(x.shape, x.dtype) for x in arrays]
    session = onnxruntime.InferenceSession(
        _model(fun, specs, opset), providers=["CPUExecutionProvider"]
    )
    names = [node.name for node in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))[0]


def _fails(what: str, fun: Callable[..., Any], *arrays: np.ndarray, **options: Any) -> bool:
    """Whether a function cannot be converted or run, with an error that says `what`."""
    try:
        _run(fun, *arrays, **options)
    except Exception as error:
        return what in str(error)
    return False


# The first integer that float32 does not have.
_LARGE = 2**24 + 1
_MATRIX = np.ones((2, 2), np.float32)


@_quirk(
    f"{_TF2ONNX}/79afdbcebac61c7aea2905790479806b83664b52/{_OPS}/logical.py",
    "lowering.export.onnx._as_comparison",
)
def comparisons_in_float32() -> bool:
    """Integers are compared as float32."""
    return not _run(lambda x: x < _LARGE, np.array([_LARGE - 1], np.int32))[0]


@_quirk(
    f"{_TF2ONNX}/ced968c05e8ba0f99d26658562ba7f57957c338f/{_OPS}/controlflow.py",
    "lowering.export.onnx._as_where",
)
def selections_by_products() -> bool:
    """A selection becomes a sum of products with 0 and 1, NaN for infinities beside it."""
    import tensorflow as tf

    x = np.array([-np.inf], np.float32)
    return bool(np.isnan(_run(lambda x: tf.where(x > 0, x, 0.0), x)[0]))


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md",
    "lowering.export.onnx._as_where",
)
def where_of_bools() -> bool:
    """onnxruntime has no Where of booleans, which ONNX has."""
    import onnx
    import onnxruntime

    c, x, y, z = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.BOOL, [1]) for n in "cxyz")
    node = onnx.helper.make_node("Where", ["c", "x", "y"], ["z"])
    graph = onnx.helper.make_graph([node], "graph", [c, x, y], [z])
    versions = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=versions, ir_version=8)
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception as error:
        return "Could not find an implementation for Where" in str(error)
    return False


@_quirk(_MATH, "lowering.export.onnx._as_itself")
def logarithms_in_float32() -> bool:
    """Logarithms of float64 are taken in float32."""
    import tensorflow as tf

    return _run(tf.math.log, np.array([1 + 1e-12]))[0] == 0


@_quirk(_TENSOR, "lowering.export.onnx._as_top_k")
def top_k_in_float32() -> bool:
    """TopK compares integers as float32."""
    import tensorflow as tf

    x = np.array([_LARGE - 1, _LARGE], np.int32)
    return _run(lambda x: tf.math.top_k(x, 1).indices, x)[0] == 0


@_quirk(
    f"{_TF2ONNX}/2681b2c5695e07ab61ee71aa62d54ebd26c63bef/tf2onnx/rewriter/gemm_rewriter.py",
    "lowering.export.onnx_passes.tfonnx",
)
def factors_of_gemm() -> bool:
    """A scale of each channel becomes the factor of a Gemm, which is a single number."""
    import tensorflow as tf

    def fun(x: Any, y: Any) -> Any:
        return tf.matmul(x, y) * tf.constant([[1.0, 2]]) + tf.constant([1.0, 1])

    return _fails("Mismatched attribute type", fun, _MATRIX, _MATRIX)


@_quirk(
    f"{_TF2ONNX}/7c5340c2350c66e63d59b8a9a7cc96809b68517a"
    "/tf2onnx/rewriter/thresholded_relu_rewriter.py",
    "lowering.export.onnx_passes.tfonnx",
)
def thresholds_of_relu() -> bool:
    """A threshold of each channel becomes that of a ThresholdedRelu, which is a single number."""
    import tensorflow as tf

    def fun(x: Any) -> Any:
        return x * tf.cast(x > tf.constant([1.0, 2]), tf.float32)

    return _fails("Mismatched attribute type", fun, _MATRIX)


@_quirk(
    f"{_TF2ONNX}/8103a74f835becc1f92551c68712a437a120d946/tf2onnx/optimizer/global_pool_optimizer.py",
    "lowering.export.onnx_passes.optimizers",
)
def maxima_of_infinities() -> bool:
    """The maximum of images becomes a GlobalMaxPool, which is finite for negative infinities."""
    import tensorflow as tf

    def fun(x: Any) -> Any:
        return tf.abs(tf.reduce_max(x, [2, 3]))

    x = np.full((1, 1, 2, 2), -np.inf, np.float32)
    return bool(np.isfinite(_run(fun, x, opset=13)[0, 0]))


@_quirk(
    f"{_TF2ONNX}/58bc540d0f8a3c70f914f04706b534ea5406b8d1/tf2onnx/optimizer/transpose_optimizer.py",
    "lowering.export.onnx_passes._transposes",
)
def bias_along_another_axis() -> bool:
    """A constant that is added to a convolution becomes its bias, along whichever axis it is."""
    import tensorflow as tf

    def fun(x: Any) -> Any:
        y = tf.nn.conv2d(x, np.ones((1, 1, 3, 3), np.float32), 1, "VALID")
        return y + np.array([[[[1]], [[2]], [[3]]]], np.float32).reshape(1, 3, 1, 1)

    result = _run(fun, np.ones((1, 3, 3, 3), np.float32))
    return not np.array_equal(result[0, 0, 0], [4, 4, 4])


@_quirk(_MATH, "lowering.rules.dot_general._matmul")
def flags_of_integer_products() -> bool:
    """A product of integers loses the flags that say which operand is transposed."""
    import tensorflow as tf

    def fun(x: Any, y: Any) -> Any:
        return tf.raw_ops.BatchMatMulV2(x=x, y=y, adj_y=True)

    x = np.ones((1, 2, 3), np.int32)
    return _fails("Incompatible dimensions for matrix multiplication", fun, x, x)


@_quirk(_TENSOR, "lowering.rules.indices.one_hot_onnx")
def one_hot_of_negative_indices() -> bool:
    """ONNX counts negative indices from the end, where TensorFlow has vectors of zeros."""
    import tensorflow as tf

    return bool(_run(lambda x: tf.one_hot(x, 3), np.array([-1], np.int32)).any())


@_quirk(
    "https://github.com/microsoft/onnxruntime/issues/20582",
    "lowering.rules.conv_general_dilated._padding",
)
def padding_of_dilated_windows() -> bool:
    """onnxruntime does not compute the padding of dilated windows, SAME_UPPER or SAME_LOWER."""
    import tensorflow as tf

    def fun(x: Any) -> Any:
        return tf.nn.conv2d(x, np.ones((2, 2, 1, 1), np.float32), 1, "SAME", dilations=2)

    spec = tf.TensorSpec([1, None, None, 1])
    what = "Dilation not supported for AutoPadType"
    return _fails(what, fun, np.ones((1, 5, 5, 1), np.float32), specs=[spec])


@_quirk(
    f"{_TF2ONNX}/79afdbcebac61c7aea2905790479806b83664b52"
    "/tf2onnx/optimizer/back_to_back_optimizer.py",
    "lowering.formats.rounding.stored",
)
def casts_that_cancel_out() -> bool:
    """A cast to float16 and back is left out, though it rounds."""
    import tensorflow as tf

    x = np.array([1.0001], np.float32)
    return _run(lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32), x)[0] != 1
