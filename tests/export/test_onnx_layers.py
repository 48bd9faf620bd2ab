"""What ordinary layers become in ONNX, whose scales, biases and norms are constants."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from lowering import export

eqx = pytest.importorskip("equinox")
hk = pytest.importorskip("haiku")

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


ROWS, IMAGES = numbers(2, 4), numbers(2, 4, 4, 4)
INTEGERS = np.int32([[-5, -1, 0, 3], [7, 2, -2, 1]])
WEIGHTS, KERNEL, SCALE, BIAS = numbers(4, 4), numbers(3, 3, 4, 4), numbers(4), numbers(4)
KEY = jax.random.key(0)


def conv(x, kernel=KERNEL):
    return lax.conv_general_dilated(
        x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


# Sums and products along each dimension look like biases and scales of channels.
OF_ROWS = {
    "scale and bias": lambda x: x @ WEIGHTS * SCALE + BIAS,
    "scales of one": lambda x: x @ WEIGHTS * SCALE[:1] + BIAS * 2,
    "scale of the other": lambda x: x @ WEIGHTS + SCALE * x[:, :1],
    "both scales": lambda x: 3 * (x @ WEIGHTS) * SCALE + SCALE * x[:, :1],
    "rows": lambda x: x @ WEIGHTS * SCALE[:2, None] + BIAS[:2, None],
    "transposed": lambda x: (WEIGHTS @ x.T) * SCALE[:, None] + BIAS[:, None],
    "leaky": lambda x: jnp.maximum(x * SCALE, x) + jnp.maximum(0.1 * x, x),
    "threshold": lambda x: (x > SCALE) * x + (x > 0.5) * x,
    "norm": lambda x: (x - BIAS) / jnp.sqrt(SCALE**2 + 1e-5) * SCALE + BIAS,
    "batched": lambda x: jax.vmap(lambda x: (x @ WEIGHTS) * SCALE + BIAS)(x),
}
OF_IMAGES = {
    "bias": lambda x: jnp.sin(conv(x) + BIAS),
    "along the width": lambda x: jnp.sin(conv(x) + BIAS[:, None]),
    "along the height": lambda x: jnp.sin(conv(x) + BIAS[:, None, None]),
    "along the batch": lambda x: jnp.sin(conv(x) + BIAS[:2, None, None, None]),
    "scales along the width": lambda x: jnp.sin(conv(x) * SCALE[:, None]),
    "scale and bias": lambda x: jnp.sin(jax.nn.relu(conv(x) * SCALE + BIAS)),
    "one number": lambda x: jnp.sin(2.0 * conv(x) + 3.0),
    "the same kernel": lambda x: jnp.sin(conv(x) * SCALE) + jnp.cos(conv(2 * x) * BIAS),
    "the same kernel, as it is": lambda x: jnp.sin(conv(x) * SCALE) + jnp.cos(conv(2 * x)),
    "the same bias": lambda x: jnp.sin(conv(x) + BIAS) + jnp.sin(conv(x) + BIAS[:, None]),
    "greatest of each": lambda x: jnp.sin(conv(x)).max((1, 2)) + conv(x).mean((1, 2)),
    "transposed": lambda x: jnp.sin(x.transpose(0, 3, 1, 2) + BIAS).transpose(2, 3, 0, 1) * SCALE,
}
OF_INTEGERS = {
    "leaky": lambda x: jnp.maximum(x * -2, x),
    "leaky of each": lambda x: jnp.maximum(x * INTEGERS[0], x),
    "threshold": lambda x: (x > 1) * x + (x > INTEGERS[0]) * x,
}


class Flax(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.BatchNorm(use_running_average=True)(nn.Conv(4, (3, 3))(x))
        x = nn.GroupNorm(2)(nn.ConvTranspose(4, (3, 3), strides=(2, 2))(x))
        x = nn.leaky_relu(nn.LayerNorm()(nn.Conv(4, (3, 3), feature_group_count=2)(x)))
        return nn.RMSNorm()(nn.PReLU()(nn.DenseGeneral(4, axis=(-2, -1))(x)))


class Nnx(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.Sequential(
            nnx.Conv(4, 4, (3, 3), rngs=rngs),
            nnx.BatchNorm(4, use_running_average=True, rngs=rngs),
            nnx.leaky_relu,
            nnx.Linear(4, 4, rngs=rngs),
            nnx.LayerNorm(4, rngs=rngs),
        )

    def __call__(self, x):
        return self.layers(x)


def of_haiku(x, is_training=False):
    x = hk.BatchNorm(True, True, 0.9)(hk.Conv2D(4, 3)(x), is_training)
    x = hk.InstanceNorm(True, True)(hk.DepthwiseConv2D(1, 3)(x))
    return hk.LayerNorm(-1, True, True)(hk.nets.MLP([4, 4])(x))


def of_equinox(x):
    keys = jax.random.split(KEY, 4)
    x = eqx.nn.Conv2d(4, 4, 3, key=keys[0])(x.transpose(2, 0, 1))
    x = eqx.nn.PReLU()(eqx.nn.GroupNorm(2, 4)(x)).reshape(-1)
    return eqx.nn.LayerNorm(3)(eqx.nn.Linear(x.size, 3, key=keys[1])(x))


def perturbed(tree):
    """Parameters as if trained: none is 0 or 1, as biases and scales are at first."""
    return jax.tree.map(lambda x: np.abs(x) + RNG.uniform(0.1, 0.5, x.shape).astype(x.dtype), tree)


def layers():
    flax = Flax()
    variables = perturbed(flax.init(KEY, IMAGES))
    haiku = hk.without_apply_rng(hk.transform_with_state(of_haiku))
    params, state = map(perturbed, haiku.init(KEY, IMAGES, True))
    model = Nnx(nnx.Rngs(0))
    graph, weights = nnx.split(model)
    weights = perturbed(weights)
    return {
        "flax": lambda x: flax.apply(variables, x),
        "nnx": lambda x: nnx.merge(graph, weights)(x),
        "haiku": lambda x: haiku.apply(params, state, x)[0],
        "equinox": jax.vmap(of_equinox),
    }


def all_of(functions):
    return lambda x: {name.replace(" ", "_"): fun(x) for name, fun in functions.items()}


@pytest.mark.parametrize("opset", [17, None])
def test_constants_of_channels(opset):
    def fun(rows, images, integers):
        return all_of(OF_ROWS)(rows), all_of(OF_IMAGES)(images), all_of(OF_INTEGERS)(integers)

    export.to_onnx(fun, (ROWS, IMAGES, INTEGERS), opset=opset)


def test_layers_of_libraries():
    export.to_onnx(all_of(layers()), (IMAGES,))


def test_greatest_of_infinities():
    """A mask may cover whatever is compared."""
    masked = np.full((2, 3, 4, 5), -np.inf, np.float32)
    export.to_onnx(lambda x: jnp.maximum(x.max((2, 3)), -5) + x.shape[0], (masked,), opset=17)
