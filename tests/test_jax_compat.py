"""Functions that use private names of JAX."""

import jax
import jax.numpy as jnp

from lowering import jax_compat


def test_transformations_are_noticed():
    assert not jax_compat.in_transformation()
    assert jax.jit(lambda: jnp.bool_(jax_compat.in_transformation()))()
