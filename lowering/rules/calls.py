"""Primitives that call a jaxpr. Most calls are inlined before they are lowered."""

import jax

from lowering import jax_compat
from lowering.ops import dtypes
from lowering.registry import Trait, call, decomposition


@call("jit", "remat2", "checkpoint")
def jit(*operands, jaxpr, **_):
    return jaxpr, operands


@call("cudnn_fusion")
def cudnn_fusion(*operands, jaxpr, **_):
    """TensorFlow chooses the kernels."""
    return jaxpr, operands


@call("custom_partitioning")
def custom_partitioning(*operands, call, **_):
    """There is nothing to partition on one device."""
    return call, operands


@decomposition("run_state", traits=Trait.NOT_MAPPED)
def run_state(*operands, **params):
    """The values that references have after a function has read and written them."""
    return jax_compat.run_state(*operands, **params)


@call("call", "closed_call", "core_call", "eval_jaxpr")
def closed_call(*operands, call_jaxpr, **_):
    return call_jaxpr, operands


@call("custom_jvp_call", "custom_vjp_call")
def custom_derivative(*operands, call_jaxpr, **_):
    """JAX has used the custom rule already where a derivative was asked for."""
    return call_jaxpr, operands


@decomposition("call_hi_primitive", dtypes=dtypes.NARROW)
@decomposition("call_hi_primitive", traits=Trait.NOT_MAPPED)
def call_hi_primitive(*operands, _prim):
    """A primitive that says itself what it expands to."""
    return jax.tree.leaves(_prim.expand(*jax.tree.unflatten(_prim.in_tree, operands)))


@call("remat_opt")
def remat_opt(*operands, fwd_jaxpr, **_):
    return fwd_jaxpr, operands


@call("custom_linear_solve")
def custom_linear_solve(*operands, const_lengths, jaxprs):
    """The operands are the constants of four functions, of which one solves, and the right side."""
    start = const_lengths.matvec + const_lengths.vecmat
    solve_consts = operands[start : start + const_lengths.solve]
    right_side = operands[sum(const_lengths) :]
    return jaxprs.solve, [*solve_consts, *right_side]


@call("custom_vmap_call")
def custom_vmap_call(*operands, call, **_):
    return call, operands


@call("linear_call")
def linear_call(*operands, callee, **_):
    return callee, operands


@call("composite")
def composite(*operands, jaxpr=None, call_jaxpr=None, **_):
    return (jaxpr if call_jaxpr is None else call_jaxpr), operands
