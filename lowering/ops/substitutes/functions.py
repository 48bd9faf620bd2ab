"""Substitutes of elementwise functions of floating-point numbers."""

import numpy as np

from lowering.ops.constants import constant
from lowering.ops.emission import cast, emit, substitute


@substitute("ClipByValue")
def _clip_by_value(x, low, high):
    return emit("Minimum", emit("Maximum", x, low), high)


@substitute("Rint")
def _rint(x):
    return emit("Round", x)


@substitute("IsInf")
def _is_inf(x):
    return emit("Equal", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("IsNan")
def _is_nan(x):
    return emit("NotEqual", x, x)


@substitute("IsFinite")
def _is_finite(x):
    return emit("Less", emit("Abs", x), constant(np.inf, x.dtype))


@substitute("Square")
def _square(x):
    return emit("Mul", x, x)


@substitute("Relu")
def _relu(x):
    return emit("Maximum", x, constant(0, x.dtype))


@substitute("Rsqrt")
def _rsqrt(x):
    return emit("RealDiv", constant(1, x.dtype), emit("Sqrt", x))


@substitute("Sign")
def _sign(x):
    zero = constant(0, x.dtype)
    return emit(
        "Sub", cast(emit("Greater", x, zero), x.dtype), cast(emit("Less", x, zero), x.dtype)
    )


@substitute("Greater")
def _greater(x, y):
    return emit("Less", y, x)
