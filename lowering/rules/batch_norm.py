"""Normalization by known statistics; see `lowering.passes.fusion.exact`."""

import dataclasses

import numpy as np
import tensorflow as tf

from lowering.ops import emit
from lowering.ops.constants import is_weight
from lowering.ops.values import tensor
from lowering.registry import Trait, rule
from lowering.rules.conv_general_dilated import is_normalized
from lowering.targets import Mode
from lowering.tensors import movement


@rule("batch_norm", keep_constants=True, traits=Trait.ELEMENTWISE)
def batch_norm(ctx, x, *statistics_and_epsilon, convolution=None):
    """TensorFlow's own op, if `convolution`, the equation that makes the float32 images, allows it.

    TensorFlow joins that op with a convolution before it; alone, it is slower than its parts.
    """
    *statistics, epsilon = statistics_and_epsilon
    is_known = all(isinstance(value, np.ndarray) for value in (*statistics, epsilon))
    if is_known and ctx.target.is_natural and convolution is None:
        mean, variance, scale, offset = statistics
        factor = (scale / np.sqrt(variance + epsilon)).astype(variance.dtype)
        shift = tensor(offset - mean * factor)
        return emit("AddV2", emit("Mul", tensor(x), tensor(factor)), shift)
    x, mean, variance, scale, offset = map(tensor, (x, *statistics))
    if (
        convolution is not None
        and ctx.mode is not Mode.EAGER
        and isinstance(epsilon, np.ndarray)
        and is_normalized(dataclasses.replace(ctx, eqn=convolution))
    ):
        features = ctx.out_aval.shape[-1:]
        by_feature = {"mean": mean, "variance": variance, "scale": scale, "offset": offset}
        by_feature = {name: movement.reshape(ctx, v, features) for name, v in by_feature.items()}
        attributes = {"epsilon": float(epsilon), "is_training": False}
        return tf.raw_ops.FusedBatchNormV3(x=x, **by_feature, **attributes).y
    factor = emit("Rsqrt", emit("AddV2", variance, tensor(epsilon)))
    if ctx.target.is_natural and is_weight(variance):
        # Optimizers multiply the weights of the layer before it by the factor, if they know it.
        factor = emit("Mul", factor, scale)
        return emit("AddV2", emit("Mul", x, factor), emit("Sub", offset, emit("Mul", mean, factor)))
    centered = emit("Mul", emit("Sub", x, mean), emit("Mul", factor, scale))
    return emit("AddV2", centered, offset)
