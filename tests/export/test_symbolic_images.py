"""Convolutions of images whose batch, height and width are symbolic, in the real runtimes.

Converters have to know how many features there are, whatever the images come from.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

IMAGES = np.random.default_rng(0).uniform(-1, 1, (3, 12, 10, 4)).astype(np.float32)
SHAPES = ["b, 2*h, 2*w, _"]
CONSTRAINTS = ["h >= 3", "w >= 3"]
LAYOUT = ("NHWC", "HWIO", "NHWC")


def kernel(groups):
    return np.random.default_rng(1).normal(size=(3, 3, 4 // groups, 8)).astype(np.float32)


def exported(consumer, fun, args, folder, **options):
    if consumer == "tflite":
        export.to_tflite(fun, args, **options)
    elif consumer == "onnx":
        export.to_onnx(fun, args, **options)
    elif consumer == "tf":
        export.to_saved_model(fun, args, folder / "model", target="tf", **options)
    else:
        export.to_tfjs(fun, args, folder / "model", **options)


CONSUMERS = pytest.mark.parametrize("consumer", ["tf", "tflite", "onnx", "tfjs"])


@CONSUMERS
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_every_padding_stride_and_dilation(consumer, groups, tmp_path):
    """Without constraints: the images may be smaller than a window."""
    weights = kernel(groups)

    def fun(x):
        return [
            lax.conv_general_dilated(
                x, weights, (stride,) * 2, padding, None, (dilation,) * 2, LAYOUT, groups
            )
            for padding in ("VALID", "SAME", ((1, 0), (2, 1)))
            for stride in (1, 2)
            for dilation in (1, 2)
        ]

    exported(consumer, fun, (IMAGES,), tmp_path, polymorphic_shapes=["b, h, w, _"])


def _cropped(x):
    batch, height, width, features = x.shape
    start = jnp.argmax(x[0, :3, 0, 0])
    return lax.dynamic_slice(x, (0, start, 1, 0), (batch, height - 4, width - 4, features))


def _scanned(x):
    carry, rows = lax.scan(lambda c, row: (c + row, c * row), x[:, 0], x.swapaxes(0, 1))
    return rows.swapaxes(0, 1) + carry[:, None]


BEFORE = {
    "rolled": lambda x: jnp.roll(x, 2, 1),
    "reflected": lambda x: jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), "reflect"),
    "continued at edges": lambda x: jnp.pad(x, ((0, 0), (2, 1), (0, 1), (0, 0)), "edge"),
    "cropped": _cropped,
    "scanned": _scanned,
    "scanned in known steps": lambda x: lax.scan(lambda c, _: (c / 2, c), x, length=3)[1][2],
    "carried": lambda x: lax.scan(lambda c, row: (c + row[:, None], None), x, x.swapaxes(0, 1))[0],
    "channels first and back": lambda x: (
        x.transpose(0, 3, 1, 2)
        .reshape(x.shape[0], 4, -1)
        .reshape(x.shape[0], 4, *x.shape[1:3])
        .transpose(0, 2, 3, 1)
    ),
}


@CONSUMERS
@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
def test_what_comes_before(consumer, before, tmp_path):
    def fun(x):
        x = before(x)
        plain = lax.conv_general_dilated(x, kernel(1), (2, 2), "VALID", dimension_numbers=LAYOUT)
        depthwise = lax.conv_general_dilated(
            x, kernel(4), (1, 1), "SAME", dimension_numbers=LAYOUT, feature_group_count=4
        )
        return plain, depthwise

    options = {"polymorphic_shapes": SHAPES, "polymorphic_constraints": CONSTRAINTS}
    exported(consumer, fun, (IMAGES,), tmp_path, **options)


@CONSUMERS
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_a_training_step(consumer, groups, tmp_path):
    """In the gradient by a filter, the batch is what a convolution contracts."""

    def step(weights, x):
        def loss(w):
            y = lax.conv_general_dilated(
                x, w, (2, 2), "SAME", dimension_numbers=LAYOUT, feature_group_count=groups
            )
            return (jax.nn.relu(y) ** 2).mean()

        value, gradient = jax.value_and_grad(loss)(weights)
        return value, weights - 0.1 * gradient

    images = IMAGES[:, :8, :8]
    shapes = [None, "b, _, _, _"]
    exported(consumer, step, (kernel(groups), images), tmp_path, polymorphic_shapes=shapes)


@CONSUMERS
def test_arrays_without_elements(consumer, tmp_path):
    def fun(x):
        nothing = x[..., :0]
        return jnp.concatenate([nothing, x], -1), nothing.sum(-1) + 1, nothing @ jnp.ones((0, 3))

    exported(consumer, fun, (IMAGES,), tmp_path, polymorphic_shapes=SHAPES)
