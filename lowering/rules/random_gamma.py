"""Samples of the gamma distribution."""

from lowering import avals, jax_compat
from lowering.registry import rule


@rule("random_gamma", held=True)
def random_gamma(ctx, key, alpha, *, log_space):
    """JAX's rejection sampler (Marsaglia and Tsang, 2000), traced with the key's implementation."""
    return ctx.lower(
        jax_compat.random_gamma,
        key,
        alpha,
        avals=[avals.physical_aval(aval) for aval in ctx.in_avals],
        impl=jax_compat.key_impl(ctx.in_avals[0].dtype),
        partitionable=jax_compat.threefry_partitionable(ctx.eqn),
        log_space=log_space,
    )
