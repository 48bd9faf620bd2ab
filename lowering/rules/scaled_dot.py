"""Contractions of operands with scales for blocks of elements."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.registry import decomposition


@decomposition("scaled_dot")
def scaled_dot(lhs, rhs, lhs_scale, rhs_scale, *, dimension_numbers, preferred_element_type=None):
    """Operands are scaled in bfloat16, and contracted in at least float32."""
    (lhs_contract, rhs_contract), _ = dimension_numbers
    result = lax.dot_general(
        _scaled(lhs, lhs_scale, lhs_contract),
        _scaled(rhs, rhs_scale, rhs_contract),
        dimension_numbers,
    )
    return lax.convert_element_type(result, preferred_element_type or jnp.bfloat16)


@decomposition("scaled_matmul", "scaled_matmul_wrapper")
def scaled_matmul(lhs, rhs, lhs_scale, rhs_scale, *, preferred_element_type):
    """Contracts the last axes of both operands, for each batch element."""
    numbers = (((2,), (2,)), ((0,), (0,)))
    params = {"dimension_numbers": numbers, "preferred_element_type": preferred_element_type}
    return [scaled_dot(lhs, rhs, lhs_scale, rhs_scale, **params)]


def _scaled(x, scale, contract):
    for axis in contract:
        if scale.shape[axis] != x.shape[axis]:
            scale = jnp.repeat(scale, x.shape[axis] // scale.shape[axis], axis)
    return _rounded(_rounded(x) * _rounded(scale))


def _rounded(x):
    """Rounds to bfloat16 and stays in float32: XLA would drop a conversion to bfloat16 and back."""
    return lax.reduce_precision(x.astype(np.float32), exponent_bits=8, mantissa_bits=7)
