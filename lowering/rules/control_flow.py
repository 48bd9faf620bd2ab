"""Primitives that choose or repeat jaxprs."""

import functools

import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.ops import constant, emit
from lowering.passes.hoisting import contract_ahead, hoist
from lowering.registry import rule
from lowering.tensors import loops


@rule("cond", keep_constants=True, keys=True)
def cond(ctx, index, *operands, branches, **_):
    """An index out of range is clamped."""
    last = len(branches) - 1
    if isinstance(index, np.ndarray):
        return ctx.run(branches[min(max(int(index), 0), last)], *operands)
    if not last:
        return ctx.run(branches[0], *operands)
    if not ctx.out_avals and not ctx.eqn.effects:
        return []

    def run(branch):
        # TensorFlow's branches need a result.
        return ctx.run(branch, *operands) or [constant(0, np.int32)]

    thunks = [functools.partial(run, branch) for branch in branches]
    if last == 1:
        results = tf.cond(emit("Greater", index, constant(0, index.dtype)), thunks[1], thunks[0])
    else:
        # TensorFlow runs the last branch for an index out of range.
        results = tf.switch_case(tf.maximum(index, 0), thunks)
    return results if ctx.out_avals else []


@rule("platform_index")
def platform_index(ctx, *, platforms):
    """The branch for the CPU, whose numbers are those to match."""
    index = next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)
    return constant(index, np.int32)


@rule("while", keep_constants=True, keys=True)
def while_(ctx, *operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts, **_):
    def lower(ctx, *operands):
        cond_consts = operands[:cond_nconsts]
        body_consts = operands[cond_nconsts : cond_nconsts + body_nconsts]
        init = operands[cond_nconsts + body_nconsts :]
        cond, cond_consts = hoist(ctx, cond_jaxpr, cond_consts)
        body, body_consts = hoist(ctx, body_jaxpr, body_consts)
        return loops.while_loop(
            lambda *carry: ctx.run(cond, *cond_consts, *carry)[0],
            lambda *carry: ctx.run(body, *body_consts, *carry),
            init,
            ctx.out_avals,
            loops.unchanged(body_jaxpr, body_nconsts, len(init)),
            cond_jaxpr.outvars[0].aval.shape,
        )

    return loops.loop(ctx, lower, operands)


@rule("scan", keep_constants=True, keys=True)
def scan(ctx, *operands, jaxpr, length, reverse, unroll, **params):
    num_consts, num_carry = jax_compat.scan_counts(params)

    def lower(ctx, *operands):
        step, consts = hoist(ctx, jaxpr, operands[:num_consts])
        init = operands[num_consts : num_consts + num_carry]
        xs = operands[num_consts + num_carry :]

        def body(*carry_and_x):
            return ctx.run(step, *consts, *carry_and_x)

        if loops.is_short(jaxpr, length):
            return loops.scan_in_place(ctx, body, init, xs, length, reverse)
        step, xs, avals = contract_ahead(ctx, step, consts, num_carry, xs, length)
        fixed = loops.unchanged(jaxpr, num_consts, num_carry)
        count = loops.elements_per_step(step, length, unroll)
        scan_ = functools.partial(
            loops.scan, ctx, body, init, xs, avals, fixed, length, reverse, count
        )
        if isinstance(length, int):
            return scan_()
        # XLA compiles the body of a loop even if there is nothing that it could be applied to.
        empty = functools.partial(loops.scan_nothing, ctx, init)
        return tf.switch_case(tf.minimum(ctx.size(length), 1), [empty, scan_])

    return loops.loop(ctx, lower, operands)
