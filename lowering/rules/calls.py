"""Primitives that call a jaxpr."""

import jax

from lowering import jax_compat
from lowering.registry import decomposition, rule


@rule("jit", keep_constants=True, keys=True)
def jit(ctx, *operands, jaxpr, **_):
    return ctx.call(jaxpr, *operands)


@rule("cudnn_fusion", keep_constants=True)
def cudnn_fusion(ctx, *operands, jaxpr, **_):
    """Kernels are TensorFlow's to choose."""
    return ctx.call(jaxpr, *operands)


@rule("custom_partitioning", keep_constants=True, keys=True)
def custom_partitioning(ctx, *operands, call, **_):
    """There is nothing to partition on one device."""
    return ctx.call(call, *operands)


@decomposition("run_state")
def run_state(*operands, **params):
    """The values that references have after a function has read and written them."""
    return jax_compat.run_state(*operands, **params)


@rule("call", "closed_call", "core_call", "eval_jaxpr", keep_constants=True, keys=True)
def closed_call(ctx, *operands, call_jaxpr, **_):
    return ctx.call(call_jaxpr, *operands)


@rule("custom_jvp_call", "custom_vjp_call", keep_constants=True, keys=True)
def custom_derivative(ctx, *operands, call_jaxpr, **_):
    """JAX has used the custom rule by now where a derivative was asked for."""
    return ctx.call(call_jaxpr, *operands)


@decomposition("call_hi_primitive")
def call_hi_primitive(*operands, _prim):
    """A primitive that says itself what it expands to."""
    return jax.tree.leaves(_prim.expand(*jax.tree.unflatten(_prim.in_tree, operands)))


@rule("remat2", "checkpoint", keep_constants=True, keys=True)
def remat2(ctx, *operands, jaxpr, **_):
    return ctx.call(jaxpr, *operands)


@rule("remat_opt", keep_constants=True, keys=True)
def remat_opt(ctx, *operands, fwd_jaxpr, **_):
    return ctx.call(fwd_jaxpr, *operands)


@rule("custom_linear_solve", keep_constants=True)
def custom_linear_solve(ctx, *operands, const_lengths, jaxprs):
    """The operands are the constants of four functions, of which one solves, and the right side."""
    start = const_lengths.matvec + const_lengths.vecmat
    solve_consts = operands[start : start + const_lengths.solve]
    right_side = operands[sum(const_lengths) :]
    return ctx.call(jaxprs.solve, *solve_consts, *right_side)


@rule("custom_vmap_call", keep_constants=True, keys=True)
def custom_vmap_call(ctx, *operands, call, **_):
    return ctx.call(call, *operands)


@rule("linear_call", keep_constants=True)
def linear_call(ctx, *operands, callee, **_):
    return ctx.call(callee, *operands)


@rule("composite", keep_constants=True, keys=True)
def composite(ctx, *operands, jaxpr=None, call_jaxpr=None, **_):
    return ctx.call(jaxpr if call_jaxpr is None else call_jaxpr, *operands)
