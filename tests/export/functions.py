"""Functions that the tests of the command line name."""

import jax
import jax.numpy as jnp
import numpy as np

WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

no_function = 3


def predict(x):
    """A small network."""
    return jax.nn.softmax(jax.nn.relu(x @ WEIGHTS))


def refused(x):
    """What only a process with JAX can run."""
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + jnp.ones(())
