"""Primitives that choose or repeat jaxprs."""

import functools
import math

import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat
from lowering.ops import constant, emit
from lowering.ops.constants import is_weight
from lowering.passes.jaxprs import is_long
from lowering.registry import Trait, rule
from lowering.tensors import loops, movement

# An equation takes about as many bytes in a file.
_EQUATION_BYTES = 256


@rule("cond", keep_constants=True, in_storage=True, traits=Trait.CONTROL_FLOW)
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
    elif ctx.target.is_consumer:
        results = _nested(ctx, index, thunks, 0)
    else:
        # TensorFlow runs the last branch for an index out of range.
        results = tf.switch_case(tf.maximum(index, 0), thunks)
    return results if ctx.out_avals else []


def _nested(ctx, index, thunks, first):
    """A binary tree of conditionals, as runtimes have no switch; the index is clamped."""
    if len(thunks) == 1:
        return thunks[0]()
    half = len(thunks) // 2
    low, high = (
        functools.partial(_nested, ctx, index, part, start)
        for part, start in ((thunks[:half], first), (thunks[half:], first + half))
    )
    is_high = emit("GreaterEqual", index, constant(first + half, index.dtype))
    return tf.cond(is_high, high, low)


@rule("platform_index")
def platform_index(ctx, *, platforms):
    """The branch for the CPU, because results are to equal those of JAX on a CPU."""
    index = next(i for i, names in enumerate(platforms) if names is None or "cpu" in names)
    return constant(index, np.int32)


def _as_function(lower):
    """A rule that is traced as a function where TensorFlow executes eagerly."""
    return lambda ctx, *operands, **params: ctx.as_function(
        functools.partial(lower, **params), *operands
    )


@rule("while", keep_constants=True, in_storage=True, traits=Trait.CONTROL_FLOW | Trait.NOT_FOLDED)
@_as_function
def while_(ctx, *operands, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts, **_):
    cond_consts = operands[:cond_nconsts]
    body_consts = operands[cond_nconsts : cond_nconsts + body_nconsts]
    init = operands[cond_nconsts + body_nconsts :]
    fixed = _unchanged(body_jaxpr, body_nconsts, len(init))

    return loops.while_loop(
        lambda *carry: ctx.run(cond_jaxpr, *cond_consts, *carry)[0],
        lambda *carry: ctx.run(body_jaxpr, *body_consts, *carry),
        loops.Carried(init, ctx.out_avals, fixed),
        cond_jaxpr.outvars[0].aval.shape,
        ctx.target,
    )


@rule("scan", keep_constants=True, in_storage=True, traits=Trait.CONTROL_FLOW)
@_as_function
def scan(ctx, *operands, jaxpr, length, reverse, unroll, **params):
    num_consts, num_carry = jax_compat.scan_counts(params)
    consts, init = operands[:num_consts], operands[num_consts : num_consts + num_carry]
    xs = operands[num_consts + num_carry :]
    carry_avals, ys_avals = ctx.out_avals[:num_carry], ctx.out_avals[num_carry:]
    xs_avals = [var.aval for var in ctx.eqn.invars[num_consts + num_carry :]]
    if ctx.target.is_consumer and isinstance(length, int) and _is_of_weights(jaxpr, xs, xs_avals):
        unroll = length
    carried = loops.Carried(init, carry_avals, _unchanged(jaxpr, num_consts, num_carry))
    body = functools.partial(ctx.run, jaxpr, *consts)
    scan = loops.Scan(ctx, body, carried, xs, xs_avals, ys_avals, length, reverse)
    return _scanned(ctx, scan, length, unroll)


def _is_of_weights(body, xs, xs_avals):
    """Whether a scan is over layers of weights: each step has more of them than it has equations.

    Without a loop they are constants, which runtimes pack once, and which can be quantized; a loop
    copies them in each step. 16 layers of two matrices took LiteRT 5.5 ms in a loop, 1.1 without.
    """
    sizes = [
        math.prod(aval.shape[1:]) * aval.dtype.itemsize
        for x, aval in zip(xs, xs_avals, strict=True)
        if len(aval.shape) > 2 and (isinstance(x, np.ndarray) or is_weight(x))
    ]
    return bool(sizes) and not is_long(body, sum(sizes) // _EQUATION_BYTES)


def _scanned(ctx, scan, length, unroll):
    if isinstance(length, int) and unroll >= length:
        return scan.unrolled()
    loop = functools.partial(scan.loop, unroll)
    if isinstance(length, int):
        results = loop()
    elif ctx.target.is_consumer:
        results = tf.cond(ctx.size(length) > 0, loop, scan.empty)
    else:
        # XLA compiles the body even if it never runs, and then cannot take elements of empty
        # arrays.
        results = tf.switch_case(tf.minimum(ctx.size(length), 1), [scan.empty, loop])
    shapes = [avals.physical_shape(aval) for aval in scan.ys_avals]
    carry, stacked = results[: len(scan.carried)], results[len(scan.carried) :]
    return [*carry, *(movement.inferable(ctx, y, s) for y, s in zip(stacked, shapes, strict=True))]


def _unchanged(body, num_consts, num_carry):
    """Which of the carried values are the same in all steps of a loop."""
    carried = body.invars[num_consts : num_consts + num_carry]
    return [x is y for x, y in zip(carried, body.outvars[:num_carry], strict=True)]
