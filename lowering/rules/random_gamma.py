"""Samples of the gamma distribution."""

from lowering import jax_compat
from lowering.registry import Trait, on_key_data

# JAX's rejection sampler (Marsaglia and Tsang, 2000), with random bits as the keys ask for.
on_key_data("random_gamma", traits=Trait.LONG)(jax_compat.random_gamma)
