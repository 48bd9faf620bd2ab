"""Patterns that TensorFlow's optimizer replaces by one op compute what they do one by one.

The patterns are those of `remapper.cc` in `tensorflow/core/grappler/optimizers`, and what looks
like them. What an op computes in one step is rounded otherwise, in the last places of what it adds
up, but has the same infinities and NaN.
"""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from harnesses import compare
from harnesses.arguments import name, specials
from lowering import convert

_SIZE = 8


def _dense(x):
    return x @ (np.eye(_SIZE) / 2).astype(x.dtype) + np.arange(_SIZE).astype(x.dtype)


def _conv(x):
    kernel = np.eye(_SIZE).astype(x.dtype).reshape(1, 1, _SIZE, _SIZE)
    images = x.reshape(1, -1, 1, _SIZE)
    convolved = lax.conv_general_dilated(
        images, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return (convolved + np.arange(_SIZE).astype(x.dtype)).reshape(x.shape)


def _centered(x, axis):
    return x - x.mean(axis, keepdims=True)


def _norm(axis):
    def norm(x):
        variance = (_centered(x, axis) ** 2).mean(axis, keepdims=True)
        return _centered(x, axis) * lax.rsqrt(variance + x.dtype.type(1e-5))

    return norm


def _weak_max(x):
    return jnp.exp(x - x.max(-1, keepdims=True))


ACTIVATIONS = {
    "relu": lambda x: jnp.maximum(x, 0),
    "relu by a choice": lambda x: jnp.where(x > 0, x, 0),
    "relu6": lambda x: jnp.minimum(jnp.maximum(x, 0), 6),
    "leaky relu": lambda x: jnp.maximum(x, 0.2 * x),
    "leaky relu by a choice": lambda x: jnp.where(x > 0, x, 0.2 * x),
    "elu": jax.nn.elu,
    "selu": jax.nn.selu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "swish": lambda x: x * jax.nn.sigmoid(x),
    "mish": lambda x: x * jnp.tanh(jax.nn.softplus(x)),
    "mish by logarithms": lambda x: x * jnp.tanh(jnp.log1p(jnp.exp(x))),
    "hard swish": lambda x: x * jnp.minimum(jnp.maximum(x + 3, 0), 6) / 6,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu by tanh": jax.nn.gelu,
}
AFTER = {"": lambda x: x, "dense, ": _dense, "convolution, ": _conv}
PATTERNS = {
    **{
        a + b: lambda x, f=f, g=g: f(g(x)) for a, g in AFTER.items() for b, f in ACTIVATIONS.items()
    },
    "dense and a sum": lambda x: _dense(x) + x,
    "dense, scaled, and a sum": lambda x: _dense(x) * 0.5 + x,
    "layer norm": _norm(-1),
    "instance norm": _norm(0),
    "softmax": lambda x: _weak_max(x) / _weak_max(x).sum(-1, keepdims=True),
    "square of a difference": lambda x: (x - x[::-1]) * (x - x[::-1]),
    "sum of squares": lambda x: (x * x).sum(-1),
    "differences": lambda x: (x - x, x / x, x != x, x <= x),
    "sums of itself": lambda x: (x + x + x, x * 2 + x * 3, x + x * 2 + x * 3 + x),
    "a factor of a sum": lambda x: x * jnp.abs(x) + x * jnp.sin(x),
    "roots": lambda x: (jnp.sqrt(x) * jnp.sqrt(x), 1 / jnp.sqrt(x), x * lax.rsqrt(x)),
    "powers": lambda x: (x**2, x**3, x**0.5, x**-1, x**-0.5, x**0.0, x**1.0),
    "conversions": lambda x: x.astype(jnp.float16).astype(x.dtype),
    "twice the same": lambda x: (jnp.concatenate([x, x]), jnp.where(x > 0, x, x), ~~(x > 0)),
}


def argument(dtype):
    """All numbers with a case of their own, and some around zero, in rows."""
    numbers = np.concatenate([specials(dtype).ravel(), np.linspace(-7, 7, 60).astype(dtype)])
    return np.resize(numbers, (-(-numbers.size // _SIZE), _SIZE))


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.float16], ids=name)
@pytest.mark.parametrize("target", ["tf", "portable"])
def test_patterns_of_the_optimizer(target, dtype):
    # Each has an argument of its own: what is used twice is not fused.
    def fun(*xs):
        return [of(x) for of, x in zip(PATTERNS.values(), xs, strict=True)]

    converted, xs = convert(fun, target=target), [tf.constant(argument(dtype))] * len(PATTERNS)
    graph = tf.function(converted, autograph=False).get_concrete_function(*xs)
    close = compare.close(ulps=8, atol=16 * float(ml_dtypes.finfo(dtype).eps))
    wrong = {}
    for key, *results in zip(PATTERNS, converted(*xs), graph(*xs), strict=True):
        pair = [[y.numpy() for y in tf.nest.flatten(of)] for of in results]
        if target == "portable":  # Natural targets leave NaN open.
            is_nan = [np.isnan(x) | np.isnan(y) for x, y in zip(*pair, strict=True)]
            pair = [[np.where(n, 0, y).astype(y.dtype) for n, y in zip(is_nan, ys)] for ys in pair]
        comparison = close(*pair, [])
        if not comparison.equal:
            wrong[key] = comparison
    assert not wrong
