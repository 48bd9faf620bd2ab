"""TensorFlow functions that a JAX program calls: their ops become part of the graph."""

import tensorflow as tf

from lowering import avals, boundary
from lowering.registry import Trait, rule


@rule("call_tf", in_storage=True, traits=Trait.NOT_FOLDED | Trait.PER_DEVICE)
def call_tf(ctx, *operands, callee, **_):
    """The function is called as it stands: its variables stay variables."""
    given = [boundary.leave(x, aval.dtype) for x, aval in zip(operands, ctx.in_avals, strict=True)]
    if ctx.target.is_consumer:
        # Complex numbers are made of their parts here, where it is checked who has such an op.
        given = [tf.complex(*boundary.parts(x)) if x.dtype.is_complex else x for x in given]
    results = callee(*given)
    return [
        boundary.enter(_checked(ctx, y, aval), aval.dtype)
        for y, aval in zip(results, ctx.out_avals, strict=True)
    ]


def _checked(ctx, y, aval):
    """A result that is to have the symbolic shape that JAX takes it to have.

    Graphs of natural targets have no assertions.
    """
    if avals.is_static(aval.shape) or ctx.target.is_natural:
        return y
    message = f"call_tf: a result has not the shape {aval.shape} that JAX takes it to have"
    check = tf.debugging.assert_equal(tf.shape(y), ctx.shape(aval.shape), message)
    with tf.control_dependencies([check] if check is not None else []):
        return tf.identity(y)
