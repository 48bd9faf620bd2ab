"""Activations that natural targets have one op for; see `passes.natural`."""

from lowering.ops import emit
from lowering.ops.values import tensor
from lowering.registry import Trait, rule
from lowering.rules.unary import register_ops
from lowering.targets import PORTABLE

register_ops({"relu6": "Relu6", "elu": "Elu", "softplus": "Softplus"}, target=PORTABLE)


@rule("leaky_relu", target=PORTABLE, keep_constants=True, traits=Trait.ELEMENTWISE)
def leaky_relu(ctx, x, alpha):
    return emit("LeakyRelu", tensor(x), alpha=float(alpha))


@rule("log_softmax", target=PORTABLE)
def log_softmax(ctx, x):
    return emit("LogSoftmax", x)
