"""Weights that several nodes read, or branches and loops, in quantized models of ONNX."""

import collections

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnx_ir")

from lowering.export.onnx import integer_weights, opsets, quantized  # noqa: E402

RNG = np.random.default_rng(0)
QUANTIZATIONS = ["dynamic", "int8", "int4"]


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


TABLE, SQUARE, MATRIX = numbers(100, 64), numbers(64, 64) / 8, numbers(64, 128) / 8
EXPERTS, FILTERS = numbers(2, 64, 128) / 8, numbers(3, 3, 4, 4) / 6
ROW, TOKENS, X, IMAGE = (
    np.int32(2),
    np.arange(5, dtype=np.int32),
    numbers(4, 64),
    numbers(1, 8, 8, 4),
)


def exported(fun, args, params, quantize, **options):
    if quantize == "int8":
        options["representative_data"] = [args]
    return export.to_onnx(fun, args, params=params, quantize=quantize, **options)


def graphs(model):
    found = [onnx.load_from_string(model).graph]
    for graph in found:
        found += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return found


def kinds(model):
    return collections.Counter(node.op_type for graph in graphs(model) for node in graph.node)


def convolve(filters, x):
    numbers_of = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, filters, (1, 1), "SAME", dimension_numbers=numbers_of)


def in_a_branch(params, x):
    return lax.cond(x.sum() > 0, lambda x: jnp.tanh(x @ params), lambda x: x * 2, x)


def in_branches(params, x):
    return lax.cond(x.sum() > 0, lambda x: jnp.tanh(x @ params), lambda x: x @ params * 2, x)


def in_a_loop(params, x):
    steps = 3 + (x.sum() > 1e9).astype(jnp.int32)
    return lax.fori_loop(0, steps, lambda i, x: jnp.tanh(x @ params), x)


def in_a_loop_twice(params, x):
    steps = 3 + (x.sum() > 1e9).astype(jnp.int32)
    return lax.fori_loop(0, steps, lambda i, x: jnp.tanh(x @ params) + params[i], x)


def of_experts(params, x):
    return jnp.einsum("ebi,eij->ebj", x, params)


@pytest.mark.parametrize("quantize", QUANTIZATIONS)
@pytest.mark.parametrize("index", [ROW, TOKENS])
def test_a_lookup_before_a_product(index, quantize):
    model = exported(lambda p, i: p[0][i] @ p[1], (index,), (TABLE, MATRIX), quantize)
    assert kinds(model)["MatMulInteger"] == (quantize == "dynamic")


@pytest.mark.parametrize("quantize", QUANTIZATIONS)
def test_a_lookup_and_a_product_read_a_weight(quantize):
    exported(lambda p, i: p[0][i] @ p[1] + p[1][0], (ROW,), (TABLE, MATRIX), quantize)


@pytest.mark.parametrize("quantize", ["dynamic", "int4"])
def test_a_lookup_and_a_product_read_a_weight_in_a_loop(quantize):
    exported(in_a_loop_twice, (X,), SQUARE, quantize)


@pytest.mark.parametrize("quantize", QUANTIZATIONS)
def test_a_lookup_before_a_branch(quantize):
    def fun(params, i):
        rows = params[0][i]
        return lax.cond(i.sum() > 3, jnp.tanh, lambda x: x * 2, rows) @ params[1]

    model = exported(fun, (TOKENS,), (TABLE, MATRIX), quantize)
    if quantize == "dynamic":
        tables = [x for x in graphs(model)[0].initializer if list(x.dims) == [100, 64]]
        assert [x.data_type for x in tables] == [onnx.TensorProto.UINT8]


@pytest.mark.parametrize("batch", [1, 2])
def test_products_with_batches(batch):
    model = exported(of_experts, (numbers(batch, 2, 64),), EXPERTS[:batch], "dynamic")
    assert kinds(model)["MatMulInteger"] == 1
    assert len(model) < 0.3 * EXPERTS[:batch].nbytes


def test_products_with_batches_beside_others(tmp_path):
    def fun(params, x):
        return of_experts(params[0], x) @ params[1]

    path = tmp_path / "model.onnx"
    args, params = (numbers(2, 2, 64),), (EXPERTS, numbers(128, 32) / 10)
    exported(fun, args, params, "dynamic", path=path, external_data=True)
    model = onnx.load(path).SerializeToString()
    assert kinds(model)["MatMulInteger"] == 2
    # A matrix has a scale for each column.
    assert {(32,), ()} <= {tuple(x.dims) for x in graphs(model)[0].initializer}
    assert len(model) < 0.3 * (EXPERTS.nbytes + params[1].nbytes)


@pytest.mark.parametrize("fun", [in_a_branch, in_branches, in_a_loop])
def test_four_bits_in_branches_and_loops(fun):
    model = exported(fun, (X,), SQUARE, "int4")
    outer, *inner = graphs(model)
    is_there = [any(x.data_type == onnx.TensorProto.UINT4 for x in g.initializer) for g in inner]
    assert sum(is_there) == kinds(model)["DequantizeLinear"] == (2 if fun is in_branches else 1)
    assert all(np.prod(x.dims) < SQUARE.size for x in outer.initializer)


def test_four_bits_beside_products_of_integers():
    """The sum of integers is a product with ones."""
    model = exported(lambda p, i: (i.sum(), p[0][i] @ p[1]), (TOKENS,), (TABLE, MATRIX), "int4")
    assert kinds(model)["DequantizeLinear"] == 1


@pytest.mark.parametrize(
    ("fun", "x", "params", "quantize", "reason"),
    [
        (in_branches, X, SQUARE, "int8", "in branches or loops"),
        (in_a_loop, X, SQUARE, "int8", "in branches or loops"),
        (convolve, IMAGE, FILTERS, "int4", "int4 is for products only"),
        (lambda p, i: p[i], TOKENS, TABLE, "int4", "int4 is for products only"),
        (lambda p, x: p.T @ x.T, X, SQUARE, "dynamic", "left operands"),
        (lambda p, x: x + p, X, SQUARE[0], "dynamic", "no constant float32 weights"),
    ],
)
def test_why_nothing_is_quantized(fun, x, params, quantize, reason):
    with pytest.raises(ValueError, match=f"nothing to quantize: .*{reason}"):
        exported(fun, (x,), params, quantize)


@pytest.mark.parametrize(
    "fun", [lambda p, x: x @ p @ p, lambda p, x: jnp.tanh(x @ p + 0.37) @ p + 0.37]
)
def test_constants_that_several_ops_read(fun):
    """Each reader has its own, as onnxruntime does not load a model in which two read one."""
    (graph,) = graphs(exported(fun, (X,), SQUARE, "int8"))
    constants = {x.name for x in graph.initializer}
    floats = {
        node.output[0]
        for node in graph.node
        if node.op_type == "DequantizeLinear" and node.input[0] in constants
    }
    read = [name for node in graph.node for name in node.input if name in floats]
    assert len(read) == len(floats) >= 2


@pytest.mark.parametrize("quantize", ["dynamic", "int8", "int4"])
def test_an_opset_that_onnxruntime_does_not_quantize_in(quantize, monkeypatch):
    """It is refused before anything is lowered."""
    monkeypatch.setattr(opsets, "newest", lambda kind: 21)
    data = [(X,)] if quantize == "int8" else None
    with pytest.raises(ValueError, match=f"quantize='{quantize}' takes an opset up to 21, not 22"):
        export.to_onnx(None, (X,), quantize=quantize, representative_data=data, opset=22)


def test_four_bits_need_an_opset():
    with pytest.raises(ValueError, match="needs opset 21 or later, not 20"):
        exported(lambda p, x: x @ p, (X,), MATRIX, "int4", opset=20)
    assert exported(lambda p, x: x @ p, (X,), MATRIX, "int4", opset=21)


def test_weights_of_experts_have_four_bits():
    model = exported(of_experts, (numbers(2, 2, 64),), EXPERTS, "int4")
    assert kinds(model)["DequantizeLinear"] == 1
    assert len(model) < 0.2 * EXPERTS.nbytes


@pytest.mark.parametrize("quantize", ["dynamic", "int4"])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_weights_of_16_bits(dtype, quantize):
    params = jnp.asarray(MATRIX, dtype)
    model = exported(lambda p, x: x @ p.astype(jnp.float32), (X,), params, quantize)
    assert len(model) < 0.3 * MATRIX.nbytes + 2000


def test_a_table_that_gives_the_logits_too():
    model = exported(lambda p, i: jnp.tanh(p[i]) @ p.T, (TOKENS,), TABLE, "dynamic")
    assert kinds(model)["MatMulInteger"] == kinds(model)["DequantizeLinear"] == 1
    assert len(model) < 0.6 * TABLE.nbytes


def test_dense_layers_with_biases():
    def fun(params, x):
        for weights, bias in params:
            x = jnp.tanh(x @ weights + bias)
        return x

    params = [(SQUARE, numbers(64)), (SQUARE.T, numbers(64))]
    for quantize, kind in (("dynamic", "MatMulInteger"), ("int4", "DequantizeLinear")):
        assert kinds(exported(fun, (X,), params, quantize))[kind] == 2


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_weights_that_are_not_finite_stay_what_they_are(value):
    bad = MATRIX.copy()
    bad[3, 5] = value

    def fun(params, x):
        return x @ params[0], jnp.where(jnp.arange(128) == 5, 0, x @ params[1])

    options = {"verify": False}
    model = exported(fun, (X,), (MATRIX, bad), "dynamic", **options)
    assert kinds(model)["MatMulInteger"] == 1


@pytest.mark.parametrize("axis", [0, None])
def test_the_steps_of_8_bits_are_those_of_the_quantizer(axis):
    array = numbers(70, 32)
    array[:, 3], array[:, 4], array[:, 5] = 0, np.abs(array[:, 4]), 1e-45
    with quantized._same_process():
        from onnxruntime.quantization import QuantType, quant_utils
    values, scales, zeros = integer_weights.quantized(array, 8, axis)
    columns = array.T if axis == 0 else [array.reshape(-1)]
    for i, column in enumerate(columns):
        zero, scale, expected = quant_utils.quantize_data(
            column, QuantType.QUInt8.tensor_type, False
        )
        np.testing.assert_array_equal(values.reshape(-1, len(columns))[:, i], expected)
        assert (scales.reshape(-1)[i], zeros.reshape(-1)[i]) == (scale, zero)


@pytest.mark.parametrize("rows", [64, 70])
def test_the_steps_of_4_bits_are_those_of_the_quantizer(rows):
    from onnxruntime.capi import _pybind_state

    array = numbers(rows, 32)
    array[:, 4] = np.abs(array[:, 4])
    blocks = -(-rows // 32)
    packed, zeros = np.zeros(rows * 16, np.uint8), np.zeros(blocks * 16, np.uint8)
    scales = np.zeros((blocks, 32), np.float32)
    _pybind_state.quantize_qdq_matmul_4bits(packed, array, scales, zeros, 32, 32, rows, False)
    found = [tensor.numpy() for tensor in integer_weights._blocks(array)()]
    np.testing.assert_allclose(found[1], scales, rtol=1e-6)
    np.testing.assert_array_equal(integer_weights._packed(np.uint8(found[2])), zeros)
    values = np.stack([packed & 15, packed >> 4], -1).reshape(rows, 32)
    off = np.abs(np.int8(found[0]) - np.int8(values))
    assert off.max() <= 1
    assert np.count_nonzero(off) < 0.01 * off.size
