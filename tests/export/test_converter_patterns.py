"""Compositions that the patterns of the converter to TF Lite match, and would change."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export


def _array(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


WEIGHTS, ROW, BIAS = _array(4, 6), _array(4), _array(6)
KERNEL, IMAGES = _array(2, 2, 2, 3), _array(1, 4, 4, 2)
INDICES = np.int32([[1], [-1], [7]])
BATCHES = _array(3, 4, 2, 5)


def _upsampled(x):
    return lax.conv_transpose(x, KERNEL, (2, 2), "SAME")


def _is_position(x):
    return (x == np.arange(4, dtype=np.int32)).astype(jnp.float32)


PROGRAMS = {
    # A number as the bias of a transposed convolution, which has one for each feature.
    "number added to features": (lambda x: _upsampled(x) + np.float32(0.5), IMAGES),
    "number of features": (lambda x: _upsampled(x) - np.float32([0.5]), IMAGES),
    "factors and a number": (lambda x: jax.nn.relu(_upsampled(x) * 2 + 1), IMAGES),
    "number added to rows": (lambda x: _upsampled(x).reshape(64, 3) + 0.5, IMAGES),
    "number added to planes": (lambda x: _upsampled(x).transpose(0, 3, 1, 2) + 0.5, IMAGES),
    # Sums that are moved behind a product.
    "row added to a column": (lambda x: (x + ROW) @ WEIGHTS + BIAS, _array(2, 1)),
    "row and a factor": (lambda x: (x * ROW) @ WEIGHTS + BIAS, _array(2, 1)),
    # Activations.
    "zeros of more axes": (lambda x: jnp.maximum(x, np.zeros((2, 4), np.float32)), ROW),
    "sixes of more axes": (
        lambda x: jnp.minimum(jax.nn.relu(x), np.full((2, 4), 6, np.float32)),
        10 * ROW,
    ),
    "ones of more axes": (
        lambda x: jnp.clip(x, np.full((2, 1), -1, np.float32), np.ones((2, 4), np.float32)),
        ROW,
    ),
    "slope of more axes": (
        lambda x: jnp.maximum(np.full((2, 4), 0.1, np.float32) * x, x),
        ROW[None],
    ),
    # Products with one-hot vectors, which become lookups.
    "positions by a table": (lambda x: _is_position(x) @ WEIGHTS, INDICES),
    "positions in batches": (lambda x: _is_position(x[..., None]) @ WEIGHTS, INDICES.T),
    "positions the other way": (
        lambda x: (np.arange(4) == x).astype(jnp.float32).reshape(1, 3, 4) @ WEIGHTS,
        INDICES,
    ),
    # Softmax leaves the order as it is, but for what becomes equal.
    "least of a softmax": (
        lambda x: jnp.argmin(jax.nn.softmax(x), -1),
        np.float32([[-200, -300, 0], [0, 200, 300]]),
    ),
    "least of a softmax by hand": (
        lambda x: jnp.argmin(jnp.exp(x) / jnp.sum(jnp.exp(x), -1, keepdims=True), -1),
        np.float32([[-200, -300, 0], [1, 2, 3]]),
    ),
    "greatest of a log softmax": (
        lambda x: jnp.argmax(jax.nn.log_softmax(x), -1),
        np.float32([[1, 1e-9, 1], [1, 1 + 1e-7, 0]]),
    ),
    # Reshapes and transposes around products.
    "contraction of reshaped rows": (
        lambda x: (x.reshape(6, 6).T @ _array(6, 5)).reshape(2, 3, 5),
        _array(2, 3, 6),
    ),
    "ops between a reshape and a contraction": (
        lambda x: ((2 * jnp.exp(x.reshape(6, 6)).T) @ _array(6, 5)).reshape(2, 3, 5),
        _array(2, 3, 6),
    ),
    "ops between a transpose and batches": (
        lambda x: _array(10, 6, 3) @ (2 * jnp.exp(x.transpose(2, 3, 0, 1)).reshape(10, 3, 4)),
        BATCHES,
    ),
    "transposed batches": (
        lambda x: _array(10, 6, 3) @ x.transpose(2, 3, 0, 1).reshape(10, 3, 4),
        BATCHES,
    ),
    "transposed batches of transposed": (
        lambda x: _array(10, 6, 4) @ x.transpose(2, 3, 0, 1).reshape(10, 3, 4).swapaxes(1, 2),
        BATCHES,
    ),
    # Transposes with a reshape between.
    "transposes of a cube": (
        lambda x: x.transpose(0, 2, 3, 1).reshape(3, 3, 3).transpose(1, 0, 2),
        _array(1, 3, 3, 3),
    ),
    "ops between transposes": (
        lambda x: jnp.exp(x.transpose(0, 3, 1, 2).reshape(3, 3, 3)).transpose(2, 1, 0),
        _array(1, 3, 3, 3),
    ),
    "a factor between transposes": (
        lambda x: (x.transpose(0, 2, 3, 1).reshape(3, 3, 3) * 2 + 1).transpose(1, 0, 2),
        _array(1, 3, 3, 3),
    ),
    "a factor before the reshape": (
        lambda x: jnp.maximum(2 * x.transpose(0, 2, 3, 1), 0.5).reshape(3, 3, 3).transpose(1, 0, 2),
        _array(1, 3, 3, 3),
    ),
    "a sum of transposes": (
        lambda x: (
            x.transpose(0, 2, 3, 1).reshape(3, 3, 3)
            + jnp.sin(x).transpose(0, 2, 3, 1).reshape(3, 3, 3)
        ).transpose(1, 0, 2),
        _array(1, 3, 3, 3),
    ),
    "transposes of a square": (
        lambda x: x.transpose(1, 2, 0).reshape(4, 4).transpose(0, 1) + x[0],
        _array(1, 4, 4),
    ),
    # Norms, whose epsilon the converter takes for none.
    "norm with an epsilon": (
        lambda x: x * lax.rsqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-4),
        1e-3 * _array(4, 8),
    ),
    "norm of the other axis": (lambda x: x / jnp.sqrt(jnp.sum(jnp.square(x), -1)), _array(5, 5)),
    "norm of small numbers": (
        lambda x: x / jnp.linalg.norm(x, axis=-1, keepdims=True),
        1e-7 * _array(4, 8),
    ),
    # The first elements of more.
    "three of five": (lambda x: jnp.stack([x[0], x[1], x[2]]), _array(5)),
    "padding as large as that of SAME": (
        lambda x: lax.conv_general_dilated(
            x, _array(3, 3, 2, 3), (2, 2), [(1, 1)] * 2, dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        _array(1, 8, 8, 2),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_patterns(name):
    fun, x = PROGRAMS[name]
    export.to_tflite(fun, (x,))


def _or_zeros(weights, x):
    """A product in a branch, to which the weights are passed."""
    return lax.cond(x.sum() > 9, lambda: jnp.zeros(6), lambda: jnp.tanh(x @ weights))


def _steps_or_none(weights, x):
    """A loop in a branch."""

    def steps():
        return lax.fori_loop(0, x.sum().astype(int) % 3 + 2, lambda _, x: jnp.tanh(x @ weights), x)

    return lax.cond(x.sum() > 9, lambda: x, steps)


PARAMETERS = {
    "a number": (lambda bias, x: _upsampled(x) + bias, np.float32(0.5), IMAGES),
    "a row": (lambda row, x: (x + row) @ WEIGHTS + BIAS, ROW, _array(2, 1)),
    # A product with a vector, which is a matrix for the time of it.
    "weights of a branch": (_or_zeros, WEIGHTS, ROW),
    "weights of a loop in a branch": (_steps_or_none, _array(4, 4), ROW),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(name):
    """Parameters are constants once the model is converted."""
    fun, params, x = PARAMETERS[name]
    export.to_tflite(fun, (x,), params=params)


def test_transposes_of_as_many_axes_as_there_may_be():
    """What keeps transposes in their places has one axis more, for which there has to be room."""
    x = _array(1, 2, 2, 2, 2, 2)

    def fun(x):
        y = jnp.exp(x.transpose(0, 2, 1, 4, 3, 5)).reshape(2, 1, 2, 2, 2, 2)
        return y.transpose(3, 1, 0, 2, 5, 4)

    export.to_tflite(fun, (x,))
