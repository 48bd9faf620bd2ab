"""A scan, and graphs of loops as users get them: with gradients, on the target `tf`."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from tests import helpers

X = np.linspace(-1, 1, 6, dtype=np.float32)

graph_of = functools.partial(helpers.graph_of, target="tf", with_gradient=True)


def cumulative(x):
    """Cumulative sums of 47 elements: a prime number, so that no steps share an iteration."""
    return lax.scan(lambda c, y: (jnp.sin(c) + y, c * y), x[0], jnp.tile(x, 8)[1:])
