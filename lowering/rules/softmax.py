"""The softmax function along the last axis; see `fusion`."""

from lowering.ops import emit, integers
from lowering.registry import rule


@rule("softmax")
def softmax(ctx, x):
    """Op by op, as TensorFlow's own Softmax leaves zeros beside NaN.

    A maximum that loses NaN does not matter: the sum has it.
    """
    last = integers([-1])
    exp = emit("Exp", emit("Sub", x, emit("Max", x, last, keep_dims=True)))
    return emit("RealDiv", exp, emit("Sum", exp, last, keep_dims=True))
