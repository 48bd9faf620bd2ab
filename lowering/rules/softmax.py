"""The softmax function along the last axis; see `passes.fusion`."""

from lowering.ops import emit, integers
from lowering.registry import rule
from lowering.targets import PORTABLE


@rule("softmax")
def softmax(ctx, x):
    """Several ops: TensorFlow's own Softmax gives zeros, not NaN, for the other elements of a row.

    A maximum that ignores NaN does no harm, as the sum is NaN.
    """
    last = integers([-1])
    exp = emit("Exp", emit("Sub", x, emit("Max", x, last, keep_dims=True)))
    return emit("RealDiv", exp, emit("Sum", exp, last, keep_dims=True))


@rule("softmax", target=PORTABLE)
def softmax_natural(ctx, x):
    return emit("Softmax", x)
