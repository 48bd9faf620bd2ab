"""Constants minus what is transposed, and divided by it: TF Lite keeps their order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

FULL = np.arange(1, 7).reshape(2, 3)

# Of x, [3, 2], which is transposed.
FUNCTIONS = {
    "scalar minus": lambda x: 3 - x.T,
    "scalar over": lambda x: 3 / x.T,
    "row minus": lambda x: jnp.arange(3, dtype=x.dtype) - x.T,
    "row over": lambda x: jnp.arange(3, dtype=x.dtype) / x.T,
    "array minus": lambda x: FULL.astype(x.dtype) - x.T,
    "array over": lambda x: FULL.astype(x.dtype) / x.T,
    "array of one column": lambda x: FULL[:, :1].astype(x.dtype) - x.T,
    "transposed twice": lambda x: (1 - x.T).T,
    "ops between": lambda x: 2 - jnp.exp(jnp.tanh(x.T.astype(jnp.float32))),
    "made of constants": lambda x: jnp.cumsum(jnp.ones((2, 3), x.dtype), 0) - x.T,
    "a product": lambda x: 1 - jnp.einsum("ij,kj->ki", x, x),
    "many axes": lambda x: 1 - x.reshape(1, 3, 2, 1).transpose(3, 2, 1, 0),
    "softmax": lambda x: jax.nn.softmax(1 - x.T),
    "sort": lambda x: lax.sort(x, dimension=0),
    "a branch": lambda x: lax.cond(
        x[0, 0] > 0, lambda y: 1 - y.T, lambda y: 2 / y.T + y.T, x + 1.0
    ),
    "a loop": lambda x: lax.fori_loop(0, 2, lambda i, y: (3 - y.T).T, x),
}


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_constants_stay_first(name, dtype):
    x = np.random.default_rng(0).integers(1, 9, (3, 2)).astype(dtype)
    export.to_tflite(FUNCTIONS[name], (x,))


@pytest.mark.parametrize("operator", [lax.sub, lax.div])
def test_parameters_stay_first(operator):
    """Variables are constants once they are frozen."""
    w = np.random.default_rng(0).uniform(1, 2, (2, 3)).astype(np.float32)
    x = np.random.default_rng(1).uniform(1, 2, (3, 2)).astype(np.float32)
    export.to_tflite(lambda w, x: operator(w, x.T), (x,), params=w)
    export.to_tflite(lambda x: operator(jnp.asarray(w), x.T), (x,))
