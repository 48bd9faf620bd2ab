"""Models of ONNX in other runtimes than the one that they are verified with."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx_ir")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)

# The one with nodes of attention, and the newest.
OPSETS = [23, None]


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def mlp(params, x):
    x = jax.nn.gelu(x @ params["dense"] + params["bias"])
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) @ params["dense"].T


def images(params, x):
    numbers_of = ("NHWC", "HWIO", "NHWC")
    x = lax.conv_general_dilated(x, params["filters"], (2, 2), "SAME", dimension_numbers=numbers_of)
    pooled = lax.reduce_window(
        jax.nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME"
    )
    return pooled.mean((1, 2))


def attention(params, x):
    query, key, value = jnp.split((x @ params["all"]).reshape(2, 5, 2, 12), 3, -1)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / 2
    scores = jnp.where(jnp.tril(jnp.ones((5, 5), bool)), scores, -1e30)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)


def recurrent(params, x):
    def step(state, row):
        state = jnp.tanh(row @ params["input"] + state @ params["state"])
        return state, state.sum(-1)

    return lax.scan(step, jnp.zeros((3, 8)), x)


def counting(params, x):
    """A loop of more iterations than are unrolled."""
    return lax.fori_loop(0, 100, lambda i, y: jnp.tanh(y @ params["w"]) + i / x, x)


def stacking(params, x):
    def step(state, i):
        state = jnp.tanh(state @ params["w"] + i)
        return state, state.sum(-1)

    return lax.scan(step, x, jnp.linspace(0.0, 1.0, 100))


def branching(params, x):
    x = lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)
    return lax.while_loop(lambda x: x.sum() < 100, lambda x: 2 * jnp.abs(x) + 1, x @ params["w"])


def searching(params, x):
    values, indices = lax.top_k(x, 3)
    return values, indices, jnp.argmax(x, -1), jnp.cumsum(x, -1), params["table"][indices]


def normalizing(params, x):
    """Norms of rows, of groups of channels, and of images."""
    groups = x.reshape(2, 9, 9, 2, 2)
    centered = groups - groups.mean((1, 2, 4), keepdims=True)
    groups = centered * lax.rsqrt(groups.var((1, 2, 4), keepdims=True) + 1e-5)
    squares = lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
    images = (x - x.mean((1, 2), keepdims=True)) / jnp.sqrt(x.var((1, 2), keepdims=True) + 1e-5)
    return groups.reshape(x.shape), x * squares * params["scale"], images * params["scale"]


def resizing(params, x):
    larger = jax.image.resize(x, (2, 18, 20, 4), "cubic")
    smaller = jax.image.resize(x, (2, 5, 7, 4), "linear")
    windows = (1, 2, 2, 1)
    return larger, smaller, lax.reduce_window(x, 0.0, lax.add, windows, windows, "VALID")


def scattering(params, x):
    rows, columns = jnp.array([2, 0]), jnp.array([1, 1])
    summed = jax.ops.segment_sum(x, jnp.array([0, 1, 0]), 2)
    scattered = x.at[rows].set(1.0), x.at[columns].add(2.0), x.at[:, rows].mul(3.0)
    return *scattered, summed, params["table"][jnp.abs(x[:, :2]).astype(int)]


def transforming(params, x):
    return jnp.abs(jnp.fft.fft(x)), jnp.fft.irfft(jnp.fft.rfft(x) * params["factor"])


def of_few_bits(params, x):
    """Weights of 4, 8 and 16 bits, and results that are rounded to 8 bits."""
    rounded = x.astype("float8_e4m3fn").astype(x.dtype)
    return rounded, *(rounded @ weights.astype(x.dtype) for weights in params.values())


PROGRAMS = {
    "mlp": (mlp, {"dense": numbers(8, 16), "bias": numbers(16)}, numbers(3, 8)),
    "images": (images, {"filters": numbers(3, 3, 4, 5)}, numbers(2, 9, 9, 4)),
    "attention": (attention, {"all": numbers(8, 24)}, numbers(2, 5, 8)),
    "recurrent": (recurrent, {"input": numbers(4, 8), "state": numbers(8, 8)}, numbers(6, 3, 4)),
    "counting": (counting, {"w": numbers(4, 4)}, numbers(3, 4)),
    "stacking": (stacking, {"w": numbers(4, 4)}, numbers(3, 4)),
    "branching": (branching, {"w": numbers(4, 4)}, numbers(3, 4)),
    "searching": (searching, {"table": numbers(6, 2)}, numbers(2, 6)),
    "normalizing": (normalizing, {"scale": numbers(4)}, numbers(2, 9, 9, 4)),
    "resizing": (resizing, {}, numbers(2, 9, 9, 4)),
    "scattering": (scattering, {"table": numbers(6, 2)}, numbers(3, 8)),
    "transforming": (transforming, {"factor": numbers(9)}, numbers(4, 16)),
    "of few bits": (
        of_few_bits,
        {
            "int4": RNG.integers(-8, 8, (8, 1200)).astype("int4"),
            "bfloat16": numbers(8, 600).astype(jnp.bfloat16),
            "float8": numbers(8, 600).astype("float8_e4m3fn"),
        },
        numbers(3, 8),
    ),
}


def in_openvino(model, x):
    openvino = pytest.importorskip("openvino")
    core = openvino.Core()
    # By default it computes with 16 bits where a processor has them.
    precise = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(core.read_model(model), "CPU", precise)
    return [np.array(result) for result in compiled([x]).values()]


def in_reference(model, x):
    from onnx.reference import ReferenceEvaluator

    evaluator = ReferenceEvaluator(onnx.load_from_string(model))
    return evaluator.run(None, {evaluator.input_names[0]: x})


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("runtime", [in_openvino, in_reference])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name, runtime, opset):
    fun, params, x = PROGRAMS[name]
    model = export.to_onnx(fun, (x,), params=params, opset=opset)
    expected = jax.tree.leaves(jax.jit(fun)(params, x))
    for actual, e in zip(runtime(model, x), expected, strict=True):
        np.testing.assert_allclose(actual, e, 1e-4, 1e-4)
