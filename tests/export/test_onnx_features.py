"""Factors and offsets of features, which models of ONNX have in the weights of layers."""

import flax.linen as nn
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


def numbers(*shape):
    return RNG.uniform(0.2, 1.5, shape).astype(np.float32)


ROWS, IMAGES, COLUMNS = numbers(3, 4), numbers(2, 6, 6, 4), numbers(4, 3)
WEIGHTS, KERNEL, FACTOR, OFFSET = numbers(4, 4), numbers(3, 3, 4, 4), numbers(4), numbers(4)
OF_ROWS = numbers(6, 1)
MOVED = frozenset({"Pad", "Reshape", "Squeeze", "Transpose", "Unsqueeze"})


def nodes(fun, *args, **options):
    """The kinds of the nodes of a model that computes what JAX does."""
    model = onnx.load_from_string(bytes(export.to_onnx(fun, args, **options)))
    return [node.op_type for node in model.graph.node]


def computing(fun, *args, **options):
    """The same without the nodes that only move elements."""
    return [kind for kind in nodes(fun, *args, **options) if kind not in MOVED]


class Normalized(nn.Module):
    layer: nn.Module

    @nn.compact
    def __call__(self, x):
        return nn.relu(nn.BatchNorm(use_running_average=True)(self.layer(x)))


LAYERS = {
    "dense": (lambda bias: nn.Dense(6, use_bias=bias), (2, 4), ["Gemm"]),
    "sequence": (lambda bias: nn.Dense(6, use_bias=bias), (2, 3, 4), ["MatMul", "Add"]),
    "groups": (
        lambda bias: nn.Conv(8, (3, 3), feature_group_count=2, use_bias=bias),
        (2, 6, 6, 4),
        ["Conv"],
    ),
    **{
        f"{rank}-D": (
            lambda bias, rank=rank: nn.Conv(6, (3,) * rank, use_bias=bias),
            (2, *[5] * rank, 4),
            ["Conv"],
        )
        for rank in (1, 2, 3)
    },
    "transposed": (
        lambda bias: nn.ConvTranspose(6, (3, 3), strides=(2, 2), use_bias=bias),
        (2, 5, 5, 4),
        ["ConvTranspose"],
    ),
}


@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("is_parameter", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_batch_norms(name, is_parameter, has_bias):
    layer, shape, expected = LAYERS[name]
    model, x = Normalized(layer(has_bias)), numbers(*shape)
    shapes = jax.eval_shape(model.init, jax.random.key(0), x)
    variables = jax.tree.map(lambda leaf: numbers(*leaf.shape), shapes)
    if is_parameter:
        found = computing(model.apply, x, params=variables)
    else:
        found = computing(lambda x: model.apply(variables, x), x)
    assert found == [*expected, "Relu"]


def conv(x, kernel=KERNEL):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@pytest.mark.parametrize(
    "fun, x, expected",
    [
        (lambda x: 3 * (x @ WEIGHTS), ROWS, ["MatMul"]),
        (lambda x: (x @ WEIGHTS + OFFSET) / FACTOR - OFFSET, ROWS, ["Gemm"]),
        (lambda x: OFFSET - (x @ WEIGHTS) * FACTOR, ROWS, ["Gemm"]),
        (lambda x: 2 - x @ WEIGHTS, ROWS, ["Gemm"]),
        (lambda x: (WEIGHTS.T @ x) * FACTOR[:, None], COLUMNS, ["MatMul"]),
        (lambda x: (WEIGHTS.T @ x + 1) * FACTOR[:, None], COLUMNS, ["MatMul", "Add"]),
        (lambda x: conv(x).transpose(0, 3, 1, 2) * FACTOR[:, None, None], IMAGES, ["Conv"]),
        (lambda x: (conv(x) + OFFSET).reshape(2, 36, 4) * FACTOR, IMAGES, ["Conv"]),
        (lambda x: conv(x)[:, None] * FACTOR + OFFSET, IMAGES, ["Conv"]),
        (lambda x: (x @ WEIGHTS).reshape(3, 2, 2) / np.sqrt(2.0), ROWS, ["MatMul"]),
        # One number for all features, of products that Gemm does not take.
        (lambda x: (x @ WEIGHTS) * 0.5 + 1, IMAGES, ["MatMul", "Add"]),
        (lambda x: (WEIGHTS.T @ x) * 0.5 + 1, COLUMNS, ["MatMul", "Add"]),
        (lambda x: (2 - WEIGHTS.T @ x) / 3, numbers(2, 4, 3), ["MatMul", "Add"]),
    ],
)
def test_what_weights_take_in(fun, x, expected):
    assert computing(fun, x) == expected


@pytest.mark.parametrize(
    "fun, x, kept",
    [
        # Numbers along another axis than that of the features.
        (lambda x: (x @ WEIGHTS) * FACTOR[:3, None], ROWS, "Mul"),
        (lambda x: conv(x) * OF_ROWS, IMAGES, "Mul"),
        (lambda x: (x @ WEIGHTS * FACTOR) * FACTOR[:3, None], ROWS, "Mul"),
        # More numbers than features.
        (lambda x: (x @ WEIGHTS[:, :1]) * FACTOR, ROWS, "Mul"),
        (lambda x: (x @ WEIGHTS) * OF_ROWS[:2, None], ROWS, "Mul"),
        # Weights and results that something else needs.
        (lambda x: (x @ WEIGHTS * FACTOR, (x + 1) @ WEIGHTS), ROWS, "Mul"),
        (lambda x: (lambda y: (y * FACTOR, jnp.sin(y)))(x @ WEIGHTS), ROWS, "Mul"),
        # A number divided by results.
        (lambda x: 2 / (x @ WEIGHTS), ROWS, "Div"),
        # Products of infinities and zeros are no numbers, and sums of both infinities are none.
        (lambda x: jnp.maximum((x @ (WEIGHTS - 1)) * np.float32(np.inf), 0), ROWS, "Mul"),
        (lambda x: (x.astype(jnp.int32) @ np.eye(4, dtype=np.int32)) * 3, ROWS, "Mul"),
    ],
)
def test_what_stays(fun, x, kept):
    assert kept in nodes(fun, x)


def test_batches_and_images_of_any_size():
    found = computing(
        lambda x: (conv(x) + OFFSET) * FACTOR, IMAGES, polymorphic_shapes=["b, h, w, _"]
    )
    assert found == ["Conv"]


def test_ops_of_few_known_floats():
    """Parameters are constants that ops of the program are applied to."""

    def fun(params, x):
        scale = jnp.exp(params["log_scale"]) / jnp.sqrt(params["variance"] + 1e-5)
        return jnp.sin(x) * jnp.where(scale > 1, scale, jnp.tanh(scale) ** 2)

    params = {"log_scale": np.log(FACTOR), "variance": OFFSET}
    assert nodes(fun, ROWS, params=params) == ["Sin", "Mul"]


def test_known_floats_that_would_become_more():
    """A table of many numbers, which two ops make of few, is not stored."""

    def fun(params, x):
        return x + params["rows"][:, None] * params["columns"]

    params = {"rows": numbers(200), "columns": numbers(300)}
    model = export.to_onnx(fun, (numbers(200, 300),), params=params)
    assert len(model) < 10_000


def test_a_table_that_is_scaled_and_looked_up():
    """Embeddings are stored once, whatever their uses."""
    table = numbers(700, 512)

    def fun(table, indices):
        return (table[indices] @ table.T) * 0.5

    model = export.to_onnx(fun, (np.arange(5),), params=table)
    assert len(model) < 1.1 * table.nbytes
