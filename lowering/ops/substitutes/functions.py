"""Substitutes of elementwise functions of numbers by one or two other ops."""

from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from lowering.ops.constants import constant
from lowering.ops.emission import cast, emit, substitute

_SUBSTITUTES: Mapping[str, Callable[..., tf.Tensor]] = {
    "Abs": lambda x: emit("Maximum", x, emit("Neg", x)),
    "ClipByValue": lambda x, low, high: emit("Minimum", emit("Maximum", x, low), high),
    "Greater": lambda x, y: emit("Less", y, x),
    "Invert": lambda x: emit("Sub", constant(-1, x.dtype), x),
    "IsFinite": lambda x: emit("Less", emit("Abs", x), constant(np.inf, x.dtype)),
    "IsInf": lambda x: emit("Equal", emit("Abs", x), constant(np.inf, x.dtype)),
    "IsNan": lambda x: emit("NotEqual", x, x),
    "Relu": lambda x: emit("Maximum", x, constant(0, x.dtype)),
    "Rint": lambda x: emit("Round", x),
    "Rsqrt": lambda x: emit("RealDiv", constant(1, x.dtype), emit("Sqrt", x)),
    "Square": lambda x: emit("Mul", x, x),
}
for _op, _function in _SUBSTITUTES.items():
    substitute(_op)(_function)


@substitute("Sign")
def _sign(x):
    zero = constant(0, x.dtype)
    above, below = emit("Greater", x, zero), emit("Less", x, zero)
    return emit("Sub", cast(above, x.dtype), cast(below, x.dtype))
