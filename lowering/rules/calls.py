"""Primitives that call a jaxpr. Most calls are inlined before they are lowered."""

from lowering import jax_compat
from lowering.registry import Trait, call, decomposition

# The primitives by the parameter that holds their jaxpr. The other parameters are not needed: JAX
# has applied custom derivatives already, and there is nothing to partition on one device.
_JAXPR_PARAMS = {
    "jaxpr": ("jit", "remat2", "checkpoint", "cudnn_fusion", "expansion"),
    "call_jaxpr": (
        "call",
        "closed_call",
        "core_call",
        "eval_jaxpr",
        "custom_jvp_call",
        "custom_vjp_call",
    ),
    "call": ("custom_partitioning", "custom_vmap_call"),
    "callee": ("linear_call",),
    "fwd_jaxpr": ("remat_opt",),
}
for _param, _primitives in _JAXPR_PARAMS.items():
    call(*_primitives)(lambda *operands, _param=_param, **params: (params[_param], operands))


@call("composite")
def composite(*operands, jaxpr=None, call_jaxpr=None, **_):
    """Which parameter it is depends on the version of JAX."""
    return (jaxpr if call_jaxpr is None else call_jaxpr), operands


@call("custom_linear_solve")
def custom_linear_solve(*operands, const_lengths, jaxprs):
    """The operands are constants of four functions, one of which solves, and the right side."""
    start = const_lengths.matvec + const_lengths.vecmat
    solve_consts = operands[start : start + const_lengths.solve]
    right_side = operands[sum(const_lengths) :]
    return jaxprs.solve, [*solve_consts, *right_side]


@decomposition("run_state", traits=Trait.NOT_MAPPED)
def run_state(*operands, **params):
    """The values of references after a function has read and written them."""
    return jax_compat.run_state(*operands, **params)
