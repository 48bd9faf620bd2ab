"""Samples of the gamma distribution."""

from lowering import jax_compat
from lowering.registry import Trait, rule
from lowering.rules.random import lower_on_words


@rule("random_gamma", held=True, traits=Trait.LONG)
def random_gamma(ctx, *operands, **params):
    """JAX's rejection sampler (Marsaglia and Tsang, 2000), with random bits as the keys ask for."""
    return lower_on_words(ctx, jax_compat.random_gamma, *operands, as_function=False, **params)
