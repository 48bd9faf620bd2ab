"""Normalization by known statistics; see `fusion`."""

import tensorflow as tf

from lowering.ops import constant, emit
from lowering.registry import rule
from lowering.tensors import movement


@rule("batch_norm")
def batch_norm(ctx, x, mean, variance, scale, offset, *, epsilon):
    """TensorFlow joins its op with a convolution before it; alone, it is slower than its parts."""
    if not tf.executing_eagerly() and x.op.type == "Conv2D":
        features = ctx.out_aval.shape[-1:]
        mean, variance, scale, offset = (
            movement.reshape(ctx, v, features) for v in (mean, variance, scale, offset)
        )
        return tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            epsilon=epsilon,
            is_training=False,
        ).y
    factor = emit("Rsqrt", emit("AddV2", variance, constant(epsilon, x.dtype)))
    centered = emit("Mul", emit("Sub", x, mean), emit("Mul", factor, scale))
    return emit("AddV2", centered, offset)
