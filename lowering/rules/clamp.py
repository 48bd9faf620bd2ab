"""Clamp."""

import jax.numpy as jnp
from jax import lax

from lowering.ops import dtypes, extrema
from lowering.registry import Trait, decomposition, rule


@rule("clamp", keep_constants=True, traits=Trait.ELEMENTWISE | Trait.SELECTS)
def clamp(ctx, low, x, high):
    """NaN in any operand gives NaN; low > high gives high."""
    return extrema.minimum(extrema.maximum(x, low), high)


@decomposition("clamp", dtypes=dtypes.BOOL)
def clamp_bool(low, x, high):
    return (low | x) & high


@decomposition("clamp", dtypes=dtypes.COMPLEX)
def clamp_complex(low, x, high):
    """Compares real parts only, unlike `max` and `min`."""
    raised = jnp.where(lax.real(low) >= lax.real(x), low, x)
    return jnp.where(lax.real(high) >= lax.real(raised), raised, high)
