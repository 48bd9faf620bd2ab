"""Samples of the gamma distribution."""

from lowering import jax_compat
from lowering.registry import Trait, on_words

# JAX's rejection sampler (Marsaglia and Tsang, 2000), with random bits as the keys ask for.
on_words("random_gamma", traits=Trait.LONG)(jax_compat.random_gamma)
