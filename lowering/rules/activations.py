"""Activations that natural targets have one op for; see `passes.fusion.natural`."""

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.ops import constant, emit, kernels
from lowering.ops.values import tensor
from lowering.registry import Trait, decomposition, rule
from lowering.rules.softmax import shifted
from lowering.rules.unary import register_ops
from lowering.targets import CONSUMER, ONNX, PORTABLE, TFJS, TFLITE

register_ops({"relu6": "Relu6", "elu": "Elu", "softplus": "Softplus"}, target=PORTABLE)


@rule("leaky_relu", target=PORTABLE, keep_constants=True, traits=Trait.ELEMENTWISE)
def leaky_relu(ctx, x, alpha):
    return emit("LeakyRelu", tensor(x), alpha=float(alpha))


@rule("scaled_elu", target=PORTABLE, traits=Trait.ELEMENTWISE)
def scaled_elu(ctx, x, alpha):
    """An ELU with a factor for the negative numbers."""
    is_positive = emit("Greater", x, constant(0, x.dtype))
    return emit("SelectV2", is_positive, x, emit("Mul", alpha, emit("Elu", x)))


@decomposition("scaled_elu", target=TFJS)
def scaled_elu_by_difference(x, alpha):
    """The Elu of this runtime is exp(x) - 1, which keeps no digits of small numbers."""
    return jnp.where(x > 0, x, alpha * lax.expm1(x))


@decomposition("scaled_elu", target=ONNX)
def scaled_elu_by_tanh(x, alpha):
    """expm1(x) is 2 t / (1 - t) for t = tanh(x / 2); for negative x nothing cancels out.

    The Elu of onnxruntime keeps no digits of small numbers, and its tanh does.
    """
    t = jnp.tanh(0.5 * x)
    return jnp.where(x > 0, x, (2 * alpha) * t / (1 - t))


@rule("log_softmax", target=PORTABLE)
def log_softmax(ctx, x):
    return emit("LogSoftmax", x)


@rule("log_softmax", target=TFJS)
def log_softmax_tfjs(ctx, x):
    return emit("LogSoftmax", shifted(x))


@rule("gelu", target=PORTABLE, traits=Trait.ELEMENTWISE)
def gelu(ctx, x):
    """0.5 x erfc(-x / sqrt(2)), as in JAX."""
    complement = emit("Erfc", emit("Mul", x, constant(-np.sqrt(0.5), x.dtype)))
    return emit("Mul", emit("Mul", constant(0.5, x.dtype), x), complement)


@rule("gelu", target=CONSUMER)
def gelu_consumer(ctx, x):
    """0.5 x (1 + erf(x / sqrt(2))), by which converters and runtimes recognize a GELU."""
    erf = emit("Erf", emit("Mul", x, constant(np.sqrt(0.5), x.dtype)))
    total = emit("AddV2", constant(1, x.dtype), erf)
    return emit("Mul", emit("Mul", constant(0.5, x.dtype), x), total)


@rule("gelu", target=TFLITE)
@rule("gelu", target=TFJS)
def gelu_by_op(ctx, x):
    """The converter to TF Lite makes one op of the group, so that it needs no Erf.

    In TF.js, `tfjs.quirks.digits_of_small_errors` does no harm, as 1 is added.
    """
    with kernels.unchecked():
        erf = tf.raw_ops.Erf(x=emit("Mul", x, constant(np.sqrt(0.5), x.dtype)))
    total = emit("AddV2", constant(1, x.dtype), erf)
    return emit("Mul", emit("Mul", constant(0.5, x.dtype), x), total)
