"""Clamp."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.arrays import integers
from lowering.ops import constant, dtypes, emit, extrema
from lowering.ops.values import tensor
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import PORTABLE, TFJS


@rule("clamp", keep_constants=True, traits=Trait.ELEMENTWISE | Trait.SELECTS)
def clamp(ctx, low, x, high):
    """NaN in any operand gives NaN; low > high gives high."""
    return extrema.minimum(extrema.maximum(x, low), high)


@rule("clamp", target=PORTABLE, dtypes=dtypes.FLOAT, keep_constants=True)
def clamp_natural(ctx, low, x, high):
    """ClipByValue takes scalars, and gives the lower one where they are not in order."""
    x = tensor(x)
    if all(isinstance(y, np.ndarray) and y.ndim == 0 for y in (low, high)) and low <= high:
        return emit("ClipByValue", x, constant(low), constant(high))
    return emit("Minimum", emit("Maximum", x, tensor(low)), tensor(high))


@legalization("clamp", dtypes=dtypes.UNSIGNED_32)
def clamp_uint32(low, x, high):
    return integers.on_signed_order(lax.clamp, low, x, high)


@decomposition("clamp", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def clamp_uint32_tfjs(low, x, high):
    return lax.min(lax.max(low, x), high)


@decomposition("clamp", dtypes=dtypes.BOOL)
def clamp_bool(low, x, high):
    return (low | x) & high


@decomposition("clamp", dtypes=dtypes.COMPLEX)
def clamp_complex(low, x, high):
    """Compares real parts only, unlike `max` and `min`."""
    raised = jnp.where(lax.real(low) >= lax.real(x), low, x)
    return jnp.where(lax.real(high) >= lax.real(raised), raised, high)
