"""Volumes: what slides over three axes is one op of ONNX where onnxruntime runs that fast."""

import flax.linen as nn
import jax
import numpy as np
import pytest
from jax import lax

from lowering import export

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnx_ir")
pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
VOLUMES = RNG.normal(size=(2, 5, 6, 7, 3)).astype(np.float32)
FEATURES_FIRST = np.moveaxis(VOLUMES, -1, 1).copy()


def computing(fun, x, **options):
    """The kinds of the nodes of a model that computes what JAX does, without those that move."""
    model = onnx.load_from_string(bytes(export.to_onnx(fun, (x,), **options)))
    moved = {"Pad", "Reshape", "Slice", "Transpose"}
    return [node.op_type for node in model.graph.node if node.op_type not in moved]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [(2, 2, 2), (3, 2, 1), (3, 3, 3)])
@pytest.mark.parametrize("strides", [(1, 1, 1), (2, 2, 2), (1, 2, 3)])
def test_maxima(window, strides, padding):
    def pool(x):
        return nn.max_pool(x, window, strides, padding)

    assert computing(pool, VOLUMES) == ["MaxPool"]


@pytest.mark.parametrize(
    "dimensions",
    [(1, 1, 2, 3, 2), (2, 2, 3, 1, 1), (1, 1, 2, 1, 2), (2, 2, 2, 2, 2)],
    ids=str,
)
@pytest.mark.parametrize(("padding", "dilation"), [("SAME", 1), ("VALID", 1), ("SAME", 2)])
def test_windows_along_any_axes(dimensions, padding, dilation):
    def pool(x):
        dilations = tuple(dilation if n > 1 else 1 for n in dimensions)
        strides = (1,) * 5
        return lax.reduce_window(
            x, -np.inf, lax.max, dimensions, strides, padding, window_dilation=dilations
        )

    assert set(computing(pool, FEATURES_FIRST)) == {"MaxPool"}


def test_a_symbolic_batch():
    def pool(x):
        return nn.max_pool(x, (2, 2, 2), (2, 2, 2))

    assert computing(pool, VOLUMES, polymorphic_shapes=["b, _, _, _, _"]) == ["MaxPool"]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window", [(2, 2, 2), (3, 2, 4)])
@pytest.mark.parametrize("strides", [(2, 2, 2), (1, 2, 2)])
def test_transposed_convolutions(window, strides, padding):
    kernel = RNG.normal(size=(*window, 3, 4)).astype(np.float32)

    def transposed(x):
        return lax.conv_transpose(x, kernel, strides, padding)

    assert computing(transposed, VOLUMES) == ["ConvTranspose"]


@pytest.mark.parametrize("use_bias", [False, True])
def test_a_normalized_transposed_convolution(use_bias):
    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.ConvTranspose(4, (2, 2, 2), (2, 2, 2), use_bias=use_bias)(x)
            return nn.relu(nn.BatchNorm(use_running_average=True)(x))

    variables = Decoder().init(jax.random.key(0), VOLUMES)
    found = computing(lambda x: Decoder().apply(variables, x), VOLUMES)
    assert set(found) <= {"ConvTranspose", "Mul", "Add", "Relu"}, found


@pytest.mark.parametrize("padding", [((1, 2),) * 3, ((0, 0), (2, 1), (5, 3))])
def test_gradients_with_other_padding(padding):
    kernel = RNG.normal(size=(3, 3, 3, 3, 4)).astype(np.float32)

    def dilated(x):
        return lax.conv_general_dilated(
            x,
            kernel,
            (1, 1, 1),
            padding,
            lhs_dilation=(2, 1, 2),
            dimension_numbers=("NDHWC", "DHWIO", "NDHWC"),
        )

    assert set(computing(dilated, VOLUMES)) <= {"Conv", "ConvTranspose"}
