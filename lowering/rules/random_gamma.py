"""Samples of the gamma distribution."""

from lowering import jax_compat
from lowering.registry import rule
from lowering.rules.random import lower_on_words


@rule("random_gamma", held=True)
def random_gamma(ctx, key, alpha, *, log_space):
    """JAX's rejection sampler (Marsaglia and Tsang, 2000), with the key's own random bits."""
    impl = jax_compat.key_impl(ctx.in_avals[0].dtype)
    return lower_on_words(
        ctx,
        jax_compat.random_gamma,
        key,
        alpha,
        as_function=False,
        impl=impl,
        log_space=log_space,
    )
