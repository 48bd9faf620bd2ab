"""Programs in float16 that stay so in ONNX, from their inputs to their outputs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering import export

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
FLOAT, FLOAT16 = 1, 10


def of_float16(*shape):
    return (0.2 * RNG.normal(size=shape)).astype(np.float16)


IMAGES, ROWS = of_float16(2, 8, 8, 3), of_float16(2, 5, 8)
PARAMS = {
    "kernel": of_float16(3, 3, 3, 8),
    "query": of_float16(8, 8),
    "key": of_float16(8, 8),
    "scale": np.ones(8, np.float16),
    "out": of_float16(8, 4),
}


def layers(p, images):
    numbers = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(images, p["kernel"], (2, 2), "SAME", dimension_numbers=numbers)
    x = jax.nn.relu(x).reshape(x.shape[0], -1, 8)
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    x = (x - mean) * lax.rsqrt(variance + 1e-5) * p["scale"]
    scores = (x @ p["query"]) @ (x @ p["key"]).swapaxes(1, 2)
    x = (jax.nn.softmax(scores, -1) @ x).mean(1)
    return jax.nn.log_softmax(jax.nn.gelu(x) @ p["out"])


def exported(fun, args, **options):
    model = onnx.load_from_string(export.to_onnx(fun, args, compute_dtype="float16", **options))
    onnx.checker.check_model(model, full_check=True)
    return model


def kinds(model):
    return [node.op_type for node in model.graph.node]


def test_layers_have_no_casts():
    model = exported(layers, (IMAGES,), params=PARAMS)
    arrays = (*model.graph.input, *model.graph.output)
    assert {x.type.tensor_type.elem_type for x in arrays} == {FLOAT16}
    assert FLOAT not in {x.data_type for x in model.graph.initializer}
    found = kinds(model)
    assert "Cast" not in found
    assert {"Conv", "LayerNormalization", "Softmax", "Gelu", "LogSoftmax"} <= set(found)
    assert model.producer_version == lowering.__version__


def test_what_a_program_computes_in_float32_stays_so():
    model = exported(lambda x: jnp.sin(jnp.exp(x.astype(np.float32))).astype(x.dtype), (ROWS,))
    assert kinds(model) == ["Cast", "Exp", "Sin", "Cast"]


def test_loops_and_branches():
    def fun(x):
        x = lax.fori_loop(0, 3, lambda i, y: y * 0.5 + x, x)
        return lax.cond(x.sum() > 0, jnp.tanh, jnp.negative, x)

    assert FLOAT not in {x.data_type for x in exported(fun, (ROWS,)).graph.initializer}


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", np.float16])
def test_other_dtypes_are_refused(dtype):
    with pytest.raises(ValueError, match="compute_dtype is"):
        export.to_onnx(jnp.sin, (ROWS,), compute_dtype=dtype)


def test_a_program_without_float16_is_refused():
    with pytest.raises(ValueError, match="computes nothing in float16"):
        export.to_onnx(jnp.sin, (ROWS.astype(np.float32),), compute_dtype="float16")


def test_it_does_not_go_with_a_quantization():
    with pytest.raises(ValueError, match="do not go together"):
        export.to_onnx(jnp.sin, (ROWS,), compute_dtype="float16", quantize="dynamic")


@pytest.mark.parametrize("axes", [(1, 0, 2), (2, 0, 1, 3), (1, 2, 0, 3)], ids=str)
def test_products_behind_transposes(axes):
    """The product comes first: in the other order, onnxruntime would end this process."""
    weights = PARAMS["out"]

    def fun(x):
        return lax.transpose(x, axes) @ weights

    x = of_float16(*range(2, 1 + len(axes)), 8)
    assert kinds(exported(fun, (x,))) == ["MatMul", "Transpose"]


def test_sequences_with_their_batch_first():
    """A recurrent network takes one step after the other of all sequences."""

    def fun(p, x):
        def step(state, row):
            state = jnp.tanh(row @ p["query"] + state @ p["key"])
            return state, state

        first = jnp.zeros((x.shape[0], 8), np.float16)
        return lax.scan(step, first, x.swapaxes(0, 1))[1].swapaxes(0, 1)

    exported(fun, (of_float16(2, 20, 8),), params=PARAMS)


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize("reduction", [jnp.mean, jnp.sum, jnp.max, jnp.min, jnp.prod, jnp.var])
def test_reductions_in_old_opsets(reduction, opset):
    """Their axes are attributes there."""
    x = (np.arange(24).reshape(2, 3, 4) / 24 + 1).astype(np.float16)
    models = [
        export.to_onnx(fun, (x,), opset=opset, compute_dtype="float16")
        for fun in (lambda x: reduction(x, 1), lambda x: x - reduction(x, (0, 2), keepdims=True))
    ]
    assert all(models)


INDEX = np.array([0, 1, 0, 2, 2], np.int32)

# Programs whose ops onnxruntime's CPU lacks for 16 bits, or has for some attributes alone.
OF_WIDER_OPS = {
    "segment_sum": lambda x: jax.ops.segment_sum(x, INDEX, 3),
    "segment_max": lambda x: jax.ops.segment_max(x, INDEX, 4),
    "segment_min": lambda x: jax.ops.segment_min(x, INDEX, 4),
    "segment_prod": lambda x: jax.ops.segment_prod(x, INDEX, 3),
    "add": lambda x: x.at[INDEX].add(1),
    "multiply": lambda x: x.at[INDEX].multiply(2),
    "max": lambda x: x.at[INDEX].max(0.5),
    "min": lambda x: x.at[INDEX].min(0.5),
    "gradient": jax.grad(lambda x: (x[INDEX] ** 2).sum()),
    "cumsum": lambda x: jnp.cumsum(x, 1),
    "sort": lambda x: jnp.sort(x, 1),
    "top_k": lambda x: lax.top_k(x, 3),
    "unique": lambda x: jnp.unique(x, size=5),
    "histogram": lambda x: jnp.histogram(x, 5)[0],
    "median": lambda x: jnp.median(x, 1),
    "erf": lax.erf,
    "lgamma": lambda x: lax.lgamma(abs(x) + 1),
    "atan2": lambda x: jnp.arctan2(x, x + 1),
    "resize": lambda x: jax.image.resize(x, (10, 16), "linear"),
    "interp": lambda x: jnp.interp(x, jnp.arange(5, dtype=x.dtype), x[0, :5]),
}


@pytest.mark.parametrize("opset", [17, None])
@pytest.mark.parametrize("name", OF_WIDER_OPS)
def test_ops_that_are_computed_in_more_bits(name, opset):
    exported(OF_WIDER_OPS[name], (ROWS[0],), opset=opset)


def test_indices_that_only_replace_stay_in_float16():
    assert "Cast" not in kinds(exported(lambda x: x.at[INDEX[:2]].set(1), (ROWS[0],)))
