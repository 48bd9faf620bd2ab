"""What onnxruntime gets wrong, or refuses though it documents it."""

from typing import Any

import numpy as np

from lowering.targets.quirk import quirks_of

_quirk = quirks_of("onnx", {"onnxruntime": "1.32.0"})


def _run(kind: str, *arrays: np.ndarray, result: Any, opset: int = 18, **attributes: Any) -> Any:
    """The result of a model of one node in onnxruntime.

    Args:
      kind: the op.
      *arrays: its operands.
      result: the dtype of the result.
      opset: the version of the set of operators.
      **attributes: the attributes of the op.
    """
    import onnx
    import onnxruntime
    from onnx import helper

    inputs = [
        helper.make_tensor_value_info(f"x{i}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for i, x in enumerate(arrays)
    ]
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(result))
    output = helper.make_tensor_value_info("y", dtype, None)
    node = helper.make_node(kind, [x.name for x in inputs], ["y"], **attributes)
    model = helper.make_model(
        helper.make_graph([node], "graph", inputs, [output]),
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=onnx.helper.OP_SET_ID_VERSION_MAP["ai.onnx", opset],
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {f"x{i}": x for i, x in enumerate(arrays)})[0]


def _fails(what: str, kind: str, *arrays: np.ndarray, **options: Any) -> bool:
    """Whether a model of one node cannot be run, with an error that says `what`."""
    try:
        _run(kind, *arrays, **options)
    except Exception as error:
        return what in str(error)
    return False


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md",
    "lowering.export.onnx.elementwise.select",
)
def where_of_bools() -> bool:
    """onnxruntime has no Where of booleans, which ONNX has."""
    x = np.array([True])
    return _fails("Could not find an implementation for Where", "Where", x, x, x, result=bool)


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/docs/OperatorKernels.md",
    "lowering.export.onnx.randomness.random_uniform",
)
def random_numbers_of_new_opsets() -> bool:
    """onnxruntime's CPU has no RandomUniformLike since opset 22."""
    x = np.zeros(1, np.float32)
    what = "Could not find an implementation for RandomUniformLike"
    return _fails(what, "RandomUniformLike", x, result=np.float32, opset=22)


@_quirk(
    "https://github.com/microsoft/onnxruntime/issues/20582",
    "lowering.tensors.convolutions._padding",
)
def padding_of_dilated_windows() -> bool:
    """onnxruntime does not compute the padding of dilated windows, SAME_UPPER or SAME_LOWER."""
    x, window = np.ones((1, 1, 5, 5), np.float32), np.ones((1, 1, 2, 2), np.float32)
    return _fails(
        "Dilation not supported for AutoPadType",
        "Conv",
        x,
        window,
        result=np.float32,
        auto_pad="SAME_UPPER",
        dilations=[2, 2],
    )


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/cpu/reduction"
    "/reduction_ops.h",
    "lowering.rules.reductions.reduce_sum_by_product",
)
def sums_of_large_integers() -> bool:
    """onnxruntime's sums of int64 lose the digits that a double does not hold.

    Its sums of int32 end at the largest number instead of wrapping around.
    """
    x = np.array([2**60, 1], np.int64)
    return int(_run("ReduceSum", x, result=np.int64)[0]) != 2**60 + 1


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/cpu/math"
    "/element_wise_ops.cc",
    "lowering.ops.substitutes.angles.sine",
)
def digits_of_sines() -> bool:
    """onnxruntime's sines and cosines of float64 lose digits next to where they are zero."""
    # Of single numbers it takes another sine.
    x = np.full(16, np.pi)
    return abs(_run("Sin", x, result=np.float64)[0] - np.sin(x)[0]) > 1e-20


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/cpu/activation"
    "/activations.h",
    "lowering.rules.unary.logistic_of_double",
)
def logistic_of_small_doubles() -> bool:
    """onnxruntime's logistic function of float64 is zero where it should be small."""
    return _run("Sigmoid", np.array([-40.0]), result=np.float64)[0] == 0


@_quirk(
    "https://github.com/microsoft/onnxruntime/blob/main/include/onnxruntime/core/common/float8.h",
    "lowering.export.onnx.fused_roundings.casts",
)
def casts_to_float8() -> bool:
    """onnxruntime casts some numbers to float8 wrongly that are just beyond its largest one.

    Without saturation, 61440 is NaN in float8_e5m2, where ONNX and JAX have infinity. In
    float8_e4m3fn, 480 is 448 in place of NaN.
    """
    import onnxruntime
    from onnx import TensorProto, helper

    of_8_bits, of_32_bits = TensorProto.FLOAT8E5M2, TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["stored"], to=of_8_bits, saturate=0),
            helper.make_node("Cast", ["stored"], ["y"], to=of_32_bits),
        ],
        "graph",
        [helper.make_tensor_value_info("x", of_32_bits, [])],
        [helper.make_tensor_value_info("y", of_32_bits, [])],
    )
    opset = [helper.make_opsetid("", 19)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return bool(np.isnan(session.run(None, {"x": np.array(61440, np.float32)})[0]))


@_quirk(
    "https://github.com/microsoft/onnxruntime/issues/32405",
    "lowering.export.onnx.narrowing.before_transpose",
    ends_process=True,
)
def products_of_transposes_in_16_bits() -> bool:
    """A product of what is transposed and a known matrix of float16 ends the process.

    onnxruntime's CPU makes the matrix float32, and takes the name of a node for that of its result.
    The transpose exchanges the first axes of three, before the product.
    """
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper

    half = TensorProto.FLOAT16
    graph = helper.make_graph(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
            helper.make_node("MatMul", ["t", "w"], ["y"]),
        ],
        "graph",
        [helper.make_tensor_value_info("x", half, [2, 20, 8])],
        [helper.make_tensor_value_info("y", half, None)],
        [numpy_helper.from_array(np.eye(8, dtype=np.float16), "w")],
    )
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return False
