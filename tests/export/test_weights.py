"""Models of programs in 8 and 16 bits: as fast as those in float32, in files of half the size."""

import json
import pathlib

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx
import pytest
from ai_edge_litert.interpreter import Interpreter
from jax import lax

from lowering import export, narrow_formats
from lowering.export.channels import scaled as as_scaled
from lowering.export.entries import entry
from lowering.export.onnx import dtypes as dtypes_of_onnx
from lowering.export.weights import dtypes_of, in_fewer_bits
from lowering.targets import TFLITE

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT16 = np.dtype(np.float16)
RNG = np.random.default_rng(0)
LARGE = RNG.normal(size=2000).astype(np.float32)


def network(params, x):
    """A convolution, attention, a norm and a dense layer."""
    x = lax.conv_general_dilated(
        x, params["conv"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    x = jax.nn.relu(x).reshape(x.shape[0], -1, x.shape[-1])
    q, k, v = (x @ params[name] for name in "qkv")
    x = x + jax.nn.softmax(q @ k.swapaxes(1, 2) / 8) @ v
    x = (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    return jax.nn.gelu(x @ params["dense"]).mean(1)


def arguments(dtype):
    shapes = {
        "conv": (3, 3, 3, 64),
        "q": (64, 64),
        "k": (64, 64),
        "v": (64, 64),
        "dense": (64, 384),
    }
    params = {n: (RNG.normal(size=s) / 8).astype(dtype) for n, s in shapes.items()}
    return params, RNG.normal(size=(1, 8, 8, 3)).astype(dtype)


def tflite(fun, x, params, _):
    model = export.to_tflite(fun, (x,), params=params)
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    names = [op["op_name"] for op in interpreter._get_ops_details()]
    # The interpreter hands parts to XNNPACK, beside the ops of which they are made.
    return len(model), [name for name in names if name != "DELEGATE"]


def onnx_(fun, x, params, _):
    model = export.to_onnx(fun, (x,), params=params)
    return len(model), [node.op_type for node in onnx.load_from_string(model).graph.node]


def tfjs(fun, x, params, folder):
    export.to_tfjs(fun, (x,), folder / "model", params=params)
    files = list(pathlib.Path(folder / "model").iterdir())
    nodes = json.loads((folder / "model" / "model.json").read_text())["modelTopology"]["node"]
    return sum(f.stat().st_size for f in files if f.suffix == ".bin"), [n["op"] for n in nodes]


FORMATS = {"tflite": tflite, "onnx": onnx_, "tfjs": tfjs}
# TensorFlow's optimizer folds what takes less than 100 kB in the end, and leaves the rest.
SIZES = [70, 400]
# What widens a weight when a model is loaded.
WIDENING = {"DEQUANTIZE", "Cast", "CAST"}


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_networks_of_16_bits(dtype, to, tmp_path):
    (params, x), found = arguments(np.float32), []
    for kind in (np.dtype(np.float32), dtype):
        own = jax.tree.map(lambda w, kind=kind: w.astype(kind), params)
        (tmp_path / kind.name).mkdir()
        found.append(FORMATS[to](network, x.astype(kind), own, tmp_path / kind.name))
    (size, ops), (size_of_16_bits, ops_of_16_bits) = found
    assert size_of_16_bits < 0.55 * size
    computing, computing_of_16_bits = (
        [op for op in all_ops if op not in WIDENING] for all_ops in (ops, ops_of_16_bits)
    )
    assert len(computing_of_16_bits) <= 1.15 * len(computing)
    assert len(ops_of_16_bits) <= len(computing_of_16_bits) + len(params) + 10


def test_outputs_of_bfloat16_have_no_ops_of_their_own(tmp_path):
    """They are float32 in LiteRT; nothing has to keep a cast in its place, as in other graphs."""

    def fun(x):
        return jnp.concatenate([jnp.broadcast_to(x[:1], (4, 32)), x]) * 2

    x = RNG.normal(size=(16, 32)).astype(np.float32)
    (_, ops), (_, narrow) = (tflite(fun, x.astype(d), None, tmp_path) for d in ("f4", BFLOAT16))
    assert narrow == ops


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_weights_of_8_bits(dtype, to, tmp_path):
    info = np.iinfo(dtype)
    weights, x = (
        RNG.integers(info.min, info.max + 1, shape).astype(dtype)
        for shape in ((300, 256), (2, 300))
    )

    def fun(weights, x):
        return lax.dot(x, weights, preferred_element_type=np.int32)

    size, _ = FORMATS[to](fun, x, weights, tmp_path)
    assert size < 1.1 * weights.nbytes


def _quantized(shape, axis, largest):
    """Integers, and a factor for each channel along an axis."""
    factors = [size if i == axis % len(shape) else 1 for i, size in enumerate(shape)]
    scales = np.exp(RNG.normal(size=factors)) / 100
    return RNG.integers(-largest, largest + 1, shape).astype(np.int8), scales.astype(np.float32)


@pytest.mark.parametrize("to", ["tflite", "onnx"])
@pytest.mark.parametrize("dtype", ["int8", "int4"])
@pytest.mark.parametrize("is_closed_over", [False, True], ids=["params", "closure"])
def test_weights_of_8_bits_times_factors(is_closed_over, dtype, to, tmp_path):
    """As quantized models have them, in which converters compute the products."""
    integers, scales = _quantized((300, 256), 1, 127 if dtype == "int8" else 7)
    weights = jnp.asarray(integers, dtype), jnp.asarray(scales)

    def fun(weights, x):
        return x @ (weights[0].astype(np.float32) * weights[1])

    x = RNG.normal(size=(2, 300)).astype(np.float32)
    if is_closed_over:
        size, _ = FORMATS[to](lambda x: fun(weights, x), x, None, tmp_path)
    else:
        size, _ = FORMATS[to](fun, x, weights, tmp_path)
    assert size < 1.1 * integers.nbytes + 2000


@pytest.mark.parametrize("largest", [127, 7, 50, 1])
@pytest.mark.parametrize(
    ("shape", "axis"), [((64, 40), 0), ((64, 40), 1), ((3, 3, 16, 32), 3), ((1, 5, 5, 80), 3)]
)
def test_integers_times_factors_are_found(shape, axis, largest):
    integers, scales = _quantized(shape, axis, largest)
    x = integers * scales
    found = as_scaled(x)
    assert found.integers.dtype == np.int8
    along = [-1 if i == found.axis else 1 for i in range(x.ndim)]
    np.testing.assert_array_equal(found.integers * found.scales.reshape(along), x)
    for other in (np.nan, -0.0, x.max() * 1.001):
        changed = x.copy()
        changed[(1,) * x.ndim if shape[0] > 1 else (0, 1, 1, 1)] = other
        assert as_scaled(changed) is None
    assert as_scaled(RNG.normal(size=shape).astype(np.float32)) is None


@pytest.mark.parametrize("is_closed_over", [False, True], ids=["params", "closure"])
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, *map(np.dtype, ("i1", "u1", "i2"))], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_weights_are_widened_when_tfjs_loads_a_model(size, dtype, is_closed_over, tmp_path):
    weights = jnp.asarray(RNG.integers(0, 100, (size, size)).astype(dtype))

    def fun(weights, x):
        return x @ weights.T.astype(np.float32)

    x = RNG.normal(size=(2, size)).astype(np.float32)
    if is_closed_over:
        of_model, ops = tfjs(lambda x: fun(weights, x), x, None, tmp_path)
    else:
        of_model, ops = tfjs(fun, x, weights, tmp_path)
    assert of_model < 1.1 * weights.nbytes
    assert not WIDENING & set(ops)


def test_a_quantization_of_tfjs_keeps_integers(tmp_path):
    weights = RNG.integers(-3000, 3000, (300, 300)).astype(np.int16)
    x = RNG.normal(size=(2, 300)).astype(np.float32)
    fun = lambda w, x: x @ w.astype(np.float32)  # noqa: E731
    export.to_tfjs(fun, (x,), tmp_path / "model", params=weights, quantize="uint8")
    size = sum(file.stat().st_size for file in (tmp_path / "model").glob("*.bin"))
    assert size < 1.1 * weights.nbytes


def _rows(table, i):
    return table[i].astype(np.float32) * 2


def _rows_in_8_bits(table, i):
    return table[i]


def _rows_of_a_block(table, i):
    return lax.dynamic_slice(table, (i[0], 0), (3, table.shape[1])).astype(np.float32)


def _sum_of_rows(table, i):
    def step(total, k):
        return total + table[k].astype(np.float32), None

    return lax.scan(step, jnp.zeros(table.shape[1]), i)[0]


def _rows_twice(table, i):
    return table[i].astype(np.float32), table[i + 1] + table.dtype.type(1)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize(
    "fun", [_rows, _rows_in_8_bits, _rows_of_a_block, _sum_of_rows, _rows_twice]
)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16])
def test_tables_of_integers(dtype, fun, to, tmp_path):
    table = RNG.integers(0, 100, (600, 64)).astype(dtype)
    i = np.int32([5, 0, 599, 7] * 5)
    of_model, _ = FORMATS[to](lambda i: fun(jnp.asarray(table), i), i, None, tmp_path)
    assert of_model < 1.1 * table.nbytes + 9000


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("of_x", [BFLOAT16, FLOAT16, np.dtype(np.float32)], ids=str)
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_weights_that_are_closed_over_and_used_in_loops(size, dtype, of_x, to, tmp_path):
    """They are in 16 bits, whether an argument is or not."""
    weights = (RNG.normal(size=(size, size)) / np.sqrt(size)).astype(dtype)

    @jax.jit
    def layer(x):
        return jnp.tanh(x @ weights)

    def fun(x):
        def step(x, _):
            return layer(x), None

        y = lax.scan(step, x.astype(dtype), None, 5)[0]
        return layer(layer(y)).astype(of_x)

    x = RNG.normal(size=(2, size)).astype(of_x)
    of_model, _ = FORMATS[to](fun, x, None, tmp_path)
    assert of_model < 1.5 * weights.nbytes + 8000


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16, np.dtype(np.int8)], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_constants_that_are_results(size, dtype, to, tmp_path):
    weights = (10 * RNG.normal(size=(size, size))).astype(dtype)
    FORMATS[to](lambda x: (x + 1, weights), np.float32([1]), None, tmp_path)


def test_only_what_keeps_its_bits_is_stored_in_fewer():
    everything = [np.dtype(d) for d in ("int8", "uint8", BFLOAT16, FLOAT16)]

    def stored(x, of_program=everything, of_file=(BFLOAT16,)):
        return in_fewer_bits(x, of_program, of_file)

    for dtype in (BFLOAT16, FLOAT16):
        x = LARGE.astype(dtype).astype(np.float32)
        assert stored(x).dtype == dtype
        np.testing.assert_array_equal(stored(x).astype(np.float32), x)
        assert stored(x[:1000]) is None
        assert stored(x, of_program=[]) is None
    assert stored(LARGE) is None
    for special in (np.nan, np.inf, -0.0):
        x = np.where(LARGE > 2, np.float32(special), LARGE.astype(FLOAT16)).astype(np.float32)
        assert stored(x).tobytes() == x.astype(FLOAT16).tobytes()
        x = np.where(LARGE > 2, np.float32(special), np.rint(LARGE))
        assert stored(x, [np.dtype(np.int8)]) is None
    assert stored(np.arange(-128, 128).repeat(8).astype(np.float32)).dtype == np.int8
    assert stored(np.arange(256).repeat(8).astype(np.int32)).dtype == np.uint8
    assert stored(np.arange(2000, dtype=np.int32)) is None
    assert stored(LARGE.astype(np.float64)) is None
    assert stored((np.rint(LARGE) + 0).astype(np.float64)).dtype == np.int8
    few = np.rint(np.clip(LARGE, 0.1, 1)).repeat(4)
    for own in (np.float32, np.int32, np.int8):  # The least bits are chosen that the file has.
        of_program = [np.dtype(d) for d in ("int16", "int8", "int4", "uint2")]
        for dtype in (*of_program[2:], *of_program[:2]):
            found = stored(few.astype(own), of_program, of_file=[dtype])
            expected = dtype if narrow_formats.width(dtype) < 8 else np.dtype(np.int8)
            assert found is None if own == expected else found.dtype == expected
    # A dtype that the file lacks does not stand in the way of one that it has.
    large = np.full(2000, 2.0**100, np.float32)
    of_program = [np.dtype(ml_dtypes.float8_e8m0fnu), BFLOAT16]
    assert stored(large, of_program).dtype == BFLOAT16
    assert stored(large, of_program, of_file=()) is None


def test_bfloat16_as_float16():
    def stored(x):
        return in_fewer_bits(x, [BFLOAT16])

    x = LARGE.astype(BFLOAT16).astype(np.float32)
    assert stored(x).dtype == np.float16
    small = np.append(x, np.float32(2.0**-30)).astype(np.float32)
    assert stored(small)[-1] == 0
    for factor in (2.0**20, 2.0**-20):  # Beyond the range of float16.
        assert stored(x * np.float32(factor)) is None
    with_infinities = np.where(x > 2, np.float32(np.inf), x)
    np.testing.assert_array_equal(np.isinf(stored(with_infinities)), x > 2)


def test_dtypes_of_programs():
    def dtypes(*args, params=None):
        def fun(*args):
            return jax.tree.map(lambda x: x + 1, args)

        made = entry(fun, args, TFLITE, params=params)
        return dtypes_of([made.concrete])

    x = np.ones(3, np.float32)
    assert dtypes(x) == set()
    assert dtypes(x.astype(BFLOAT16)) == {BFLOAT16}
    of_few_bits = np.dtype(ml_dtypes.float8_e5m2)
    assert dtypes(x, params=x.astype(of_few_bits)) == {of_few_bits}
    assert dtypes(x, params=[x.astype(FLOAT16), x.astype(np.int8)]) == {FLOAT16, np.dtype(np.int8)}


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_what_asks_for_the_bits_is_rounded(dtype, to, tmp_path):
    """Products keep the precision of float32; their bits do not, nor what is rounded on purpose."""
    x = RNG.normal(size=50).astype(dtype)
    integer = np.dtype(np.uint16)

    def fun(x):
        y = x * dtype.type(0.01)
        info = jnp.finfo(dtype)
        return (
            lax.bitcast_convert_type(y, integer).astype(np.int32),
            lax.bitcast_convert_type(lax.nextafter(y, jnp.full_like(y, 9)), integer).astype(
                np.int32
            ),
            lax.reduce_precision(y, info.nexp, 4).astype(np.float32),
            x == lax.reduce_precision(x, info.nexp, info.nmant),
        )

    FORMATS[to](fun, x, None, tmp_path)


def scaled(weights, x):
    """A product with weights of few bits, of which each column has a factor."""
    return (x @ weights["integers"].astype(x.dtype)) * weights["factors"]


@pytest.mark.parametrize("dtype", ["int8", "int4", "uint4"])
def test_weights_with_factors(dtype, tmp_path):
    """A model of ONNX has the integers; the factors are not put into them."""
    info = ml_dtypes.iinfo(dtype)
    integers = RNG.integers(info.min, info.max + 1, (300, 256)).astype(dtype)
    weights = {"integers": integers, "factors": RNG.random(256).astype(np.float32)}
    size, ops = onnx_(scaled, np.ones((2, 300), np.float32), weights, tmp_path)
    assert size < 1.1 * integers.size
    assert sorted(ops) == ["Cast", "MatMul", "Mul"]


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "float8_e4m3fn", "float8_e5m2"])
def test_weights_of_few_bits_are_not_made_to_fit(dtype, to, tmp_path):
    """They are numbers of their dtype, so that nothing is computed of them alone."""
    weights = RNG.integers(0, 8, (300, 256)).astype(dtype)

    def fun(weights, x):
        return x @ weights.astype(x.dtype)

    _, ops = FORMATS[to](fun, np.ones((2, 300), np.float32), weights, tmp_path)
    computing = set(ops) - WIDENING - {"Const", "Placeholder", "Identity"}
    assert computing in ({"MatMul"}, {"FULLY_CONNECTED"}, {"_FusedMatMul"})


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("dtype", narrow_formats.FLOAT, ids=str)
@pytest.mark.parametrize("is_closed_over", [False, True], ids=["params", "closure"])
def test_weights_of_float8(is_closed_over, dtype, to, tmp_path):
    """ONNX has four of the dtypes; float16 holds the numbers of all that are not powers of two."""
    weights = np.exp2(RNG.integers(-8, 8, (300, 256))).astype(dtype)

    def fun(weights, x):
        return x @ weights.astype(x.dtype)

    x = RNG.normal(size=(2, 300)).astype(np.float32)
    if is_closed_over:
        weights = jnp.asarray(weights)
        size, ops = FORMATS[to](lambda x: fun(weights, x), x, None, tmp_path)
    else:
        size, ops = FORMATS[to](fun, x, weights, tmp_path)
    in_8_bits = to == "onnx" and dtype in dtypes_of_onnx.of_weights(19)
    assert size < (1.1 if in_8_bits else 2.1) * weights.size
    assert len(set(ops) & WIDENING) <= 1


def test_weights_of_float8_in_an_old_opset():
    """Casts of float8 came with version 19."""
    weights = jnp.asarray(RNG.normal(size=(300, 256)), jnp.float8_e5m2)
    x = RNG.normal(size=(2, 300)).astype(np.float32)
    model = export.to_onnx(lambda x: x @ weights.astype(x.dtype), (x,), opset=18)
    assert len(model) < 2.1 * weights.size


def _stored_in(model, shape):
    """The weights of a shape in a model of ONNX, as they are stored."""
    found = onnx.load_from_string(model).graph.initializer
    arrays = [onnx.numpy_helper.to_array(x) for x in found]
    return [x for x in arrays if x.shape in (shape, shape[::-1])]


def _product(weights, x):
    return x @ weights.astype(x.dtype)


def _product_of_integers(weights, x):
    return (x.astype(np.int32) @ weights.astype(np.int32)).astype(x.dtype)


def _some_rows(weights, x):
    return weights[jnp.abs(x[0, :5]).astype(np.int32)].astype(x.dtype)


def _weights_too(weights, x):
    return weights, x * 2


@pytest.mark.parametrize(
    ("fun", "is_closed_over"),
    [
        (_product, False),
        (_product, True),
        (_product_of_integers, False),
        (_some_rows, False),
        (_weights_too, True),
    ],
)
@pytest.mark.parametrize("dtype", ["int4", "uint4", "int2", "uint2"])
@pytest.mark.parametrize("opset", [22, 24, None])
def test_weights_of_few_bits_in_onnx(opset, dtype, fun, is_closed_over):
    """They are stored as they are, where every runtime that has the opset converts them."""
    info = ml_dtypes.iinfo(dtype)
    weights = RNG.integers(int(info.min), int(info.max) + 1, (300, 255)).astype(dtype)
    x = RNG.normal(size=(2, 300)).astype(np.float32)
    if is_closed_over:
        closed = jnp.asarray(weights)
        model = export.to_onnx(lambda x: fun(closed, x), (x,), opset=opset)
    else:
        model = export.to_onnx(fun, (x,), params=weights, opset=opset)
    bits = narrow_formats.width(weights.dtype)
    since = {4: 23, 2: 25}[bits]
    (stored,) = _stored_in(model, weights.shape)
    is_narrow = opset is None or opset >= since
    assert stored.dtype == (dtype if is_narrow else f"{dtype[:-1]}8")
    stored = stored if stored.shape == weights.shape else stored.T
    np.testing.assert_array_equal(stored.astype(np.int8), weights.astype(np.int8))
    assert len(model) < weights.size * (bits if is_narrow else 8) / 8 + 3000


@pytest.mark.parametrize("kept", [{}, {"quantize": "dynamic"}, {"quantize": "int4"}], ids=str)
def test_weights_of_4_bits_beside_the_model(kept, tmp_path):
    weights = {
        "integers": RNG.integers(-8, 8, (300, 256)).astype("int4"),
        "floats": RNG.normal(size=(256, 64)).astype(np.float32),
    }
    x = RNG.normal(size=(2, 300)).astype(np.float32)
    path = tmp_path / "model.onnx"
    fun = lambda w, x: jax.nn.relu(x @ w["integers"].astype(x.dtype)) @ w["floats"]  # noqa: E731
    export.to_onnx(fun, (x,), path, params=weights, external_data=True, **kept)
    onnx.checker.check_model(path, full_check=True)
    (stored,) = _stored_in(onnx.load(path).SerializeToString(), (300, 256))
    assert stored.dtype == "int4"
    np.testing.assert_array_equal(stored, weights["integers"])


def test_weights_of_64_bit_programs(tmp_path):
    """What they compute in makes no difference to the dtype that weights are stored in."""
    weights = RNG.integers(-8, 8, (300, 256)).astype("int8")
    with jax.enable_x64(True):
        size, _ = onnx_(_product, RNG.normal(size=(2, 300)), weights, tmp_path)
    assert size < 1.1 * weights.nbytes


@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_convolutions_and_norms_of_16_bits(dtype, tmp_path):
    """A model of ONNX has the weights of 16 bits, into which no norm is put."""

    def fun(params, x):
        y = lax.conv_general_dilated(
            x, params["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        y = (y - params["mean"]) * lax.rsqrt(params["variance"] + 1e-3)
        return jax.nn.relu(y * params["scale"] + params["offset"])

    shapes = {name: (64,) for name in ("mean", "variance", "scale", "offset")}
    shapes["conv"] = (3, 3, 64, 64)
    params = {name: RNG.random(shape).astype(dtype) for name, shape in shapes.items()}
    size, _ = onnx_(fun, RNG.normal(size=(1, 8, 8, 64)).astype(dtype), params, tmp_path)
    assert size < 1.1 * params["conv"].nbytes


def _normalized(params, x):
    """A convolution, a depthwise one and a dense layer, each with a norm."""
    for name, groups in {"conv": 1, "depthwise": 64}.items():
        x = lax.conv_general_dilated(
            x,
            params[name],
            (1, 1),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        x = jax.nn.relu((x - params["mean"]) * lax.rsqrt(params["variance"] + 1e-3))
    return (x @ params["dense"] + params["mean"]) / 3


def _of_norms(dtype, dense):
    shapes = {"conv": (3, 3, 64, 64), "depthwise": (5, 5, 1, 64), "dense": (64, 64)}
    shapes |= {name: (64,) for name in ("mean", "variance")}
    # So small that nothing leaves the range of float16.
    params = {n: (0.1 * RNG.normal(size=shape)).astype(dtype) for n, shape in shapes.items()}
    params["variance"] = RNG.uniform(1, 2, 64).astype(dtype)
    params["dense"] = params["dense"].astype(dense)
    return params, RNG.normal(size=(1, 8, 8, 64)).astype(dtype)


@pytest.mark.parametrize("is_closed_over", [False, True])
@pytest.mark.parametrize("dtype", [BFLOAT16, FLOAT16], ids=str)
def test_layers_and_norms_of_16_bits_in_tflite(dtype, is_closed_over, tmp_path):
    """TF Lite's converter multiplies the weights by the factors of norms."""
    params, x = _of_norms(dtype, dtype)
    if is_closed_over:
        arrays = jax.tree.map(jnp.asarray, params)
        size, ops = tflite(lambda _, x: _normalized(arrays, x), x, {}, tmp_path)
    else:
        size, ops = tflite(_normalized, x, params, tmp_path)
    assert size < 1.15 * sum(x.nbytes for x in params.values())
    assert "MUL" not in ops


@pytest.mark.parametrize("factor", [1, 1e-9, 1e9])
def test_weights_of_32_bits_beside_such_of_16_keep_them(factor, tmp_path):
    params, x = _of_norms(BFLOAT16, np.float32)
    params["dense"] *= np.float32(factor)
    size, _ = tflite(_normalized, x, params, tmp_path)
    assert params["dense"].nbytes < size - sum(
        params[name].nbytes for name in ("conv", "depthwise")
    )


def test_sums_of_weights_of_16_and_of_32_bits_keep_their_bits(tmp_path):
    """An adaptation of low rank adds matrices in float32."""

    def fun(params, x):
        return x @ (params["w"].astype(np.float32) + params["a"] @ params["b"])

    shapes = {"w": (128, 128), "a": (128, 4), "b": (4, 128)}
    params = {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    params["w"] = params["w"].astype(BFLOAT16)
    size, _ = tflite(fun, RNG.normal(size=(2, 128)).astype(np.float32), params, tmp_path)
    assert size > 4 * params["w"].size


@pytest.mark.parametrize("to", ["tflite", "onnx"])
@pytest.mark.parametrize("groups", [1, 16])
def test_convolutions_of_8_bits(groups, to, tmp_path):
    """They are convolutions of floats, which runtimes compute many times as fast."""
    weights, x = (
        RNG.integers(-127, 128, shape).astype(np.int8)
        for shape in ((3, 3, 16 // groups, 16), (1, 8, 8, 16))
    )

    def fun(weights, x):
        return lax.conv_general_dilated(
            x, weights, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups, preferred_element_type=np.int32,
        )  # fmt: skip

    _, ops = FORMATS[to](fun, x, weights, tmp_path)
    convolutions = {"Conv", "CONV_2D", "DEPTHWISE_CONV_2D"}
    assert len(convolutions & set(ops)) == 1
    assert set(ops) <= {*convolutions, *WIDENING, "Transpose"}
