"""Groups of equations that are one op in natural numerics.

JAX writes out activations and clips. Natural targets get the op that TensorFlow, its converters and
people know them by; `passes.fusion.exact` shows how groups are written and replaced.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import registry
from lowering.arrays.complex_math import size_of_parts
from lowering.passes.fusion import quotients
from lowering.passes.fusion.exact import (
    BATCH_NORM,
    SOFTMAX,
    batch_norm,
    is_float,
    is_wide,
    primitive_like_operand,
)
from lowering.passes.fusion.patterns import Pattern


def _primitive_of_two(name: str) -> jex_core.Primitive:
    """A primitive of our own of two operands of one dtype, which are broadcast."""
    primitive = registry.new_primitive(name)
    primitive.def_abstract_eval(
        lambda x, y: x.update(shape=lax.broadcast_shapes(x.shape, y.shape), weak_type=False)
    )
    return primitive


_RELU6 = primitive_like_operand("relu6")
_LEAKY_RELU = primitive_like_operand("leaky_relu")
_ELU = primitive_like_operand("elu")
_SCALED_ELU = primitive_like_operand("scaled_elu")
_SOFTPLUS = primitive_like_operand("softplus")
_LOG_SOFTMAX = primitive_like_operand("log_softmax")
GELU = primitive_like_operand("gelu")
_RSQRT_OF_POSITIVE = primitive_like_operand("rsqrt_of_positive")
_SQUARED_DIFFERENCE = _primitive_of_two("squared_difference")
_SIZE_OF_PARTS = _primitive_of_two("size_of_parts")

_X = jax.ShapeDtypeStruct((2, 3), np.float32)
_NUMBER = jax.ShapeDtypeStruct((), np.float32)
_FEATURES = jax.ShapeDtypeStruct((1, 3), np.float32)


def _is_single(x: Any, *others: Any) -> bool:
    return x.dtype == np.float32


def _are_wide(x: Any, y: Any) -> bool:
    return is_wide(x) and is_wide(y)


def _is_by_feature(x: Any, *operands: Any) -> bool:
    """Whether the operands are float32 numbers for the last axis of an array, and one number."""
    *by_feature, epsilon = operands
    shape = (*[1] * (len(x.shape) - 1), *x.shape[-1:])
    return (
        x.dtype == np.float32
        and len(x.shape) > 1
        and x.shape != shape
        and all(value.shape == shape for value in by_feature)
        and epsilon.shape == ()
    )


def _is_positive(y: Any) -> bool:
    return 0 < y < np.inf


def _of_float(
    example: Callable[..., Any],
    replacement: Callable[..., Any],
    literals: int = 0,
    when: Callable[..., bool] = is_float,
    when_literals: Callable[..., bool] = Pattern.when_literals,
) -> Pattern:
    """A function of an array of floats, and of numbers, which are literals."""
    args, positions = (_X, *[_NUMBER] * literals), tuple(range(1, 1 + literals))
    return Pattern(example, replacement, args, when, positions, when_literals)


def _leaky_relu_where_positive(x, alpha):
    return jnp.where(x > 0, x, alpha * x)


def _relu(x):
    return lax.max(x, np.zeros((), x.dtype))


# A rectifier, written as a choice.
_RELUS = (
    lambda x: jnp.where(x > 0, x, 0),
    lambda x: jnp.where(x >= 0, x, 0),
    lambda x: jnp.where(x < 0, 0, x),
    lambda x: jnp.where(x <= 0, 0, x),
)


def _scaled(x):
    return lax.erf(x * np.sqrt(0.5).astype(x.dtype))


def _divided(x):
    return lax.erf(x / np.sqrt(2).astype(x.dtype))


# JAX's searches compare zeros of one sign, and NaN of one kind. Natural numerics have only these.
def _zeros_of_one_sign(x):
    return jnp.where(x == 0, jnp.zeros_like(x), x)


def _nan_of_one_kind(x):
    return jnp.where(x != x, jnp.full_like(x, np.nan), x)


# GELU by the error function; JAX's own is by its complement.
GELUS = (
    lambda x: jax.nn.gelu(x, approximate=False),
    lambda x: 0.5 * x * (1 + _scaled(x)),
    lambda x: 0.5 * x * (1 + _divided(x)),
    lambda x: x * (0.5 * (1 + _scaled(x))),
    lambda x: x * (0.5 * (1 + _divided(x))),
    lambda x: x * 0.5 * (1 + _scaled(x)),
)


def _leaky_relu_by_maximum(x, alpha):
    return lax.max(x, alpha * x)


def _is_fraction(alpha: Any) -> bool:
    return 0 < alpha < 1


# Sigmoids, written out; where the exponential overflows, the quotient is zero.
_SIGMOIDS = (
    lambda x: 1 / (1 + lax.exp(-x)),
    lambda x: lax.integer_pow(1 + lax.exp(-x), -1),
)


def _celu_by_op(x, alpha):
    return alpha * _ELU.bind(x / alpha)


def _hard_tanh(x):
    return lax.clamp(np.array(-1, x.dtype), x, np.array(1, x.dtype))


def _size(x, y):
    return lax.abs(lax.complex(x, y))


def _square_of_size(x, y):
    """abs(x + iy)**2 without the scaling of `abs`: it overflows only where the result does."""
    return lax.square(x) + lax.square(y)


def _clip(x, low, high):
    return lax.min(high, lax.max(low, x))


def _clamp(x, low, high):
    return lax.clamp(low, x, high)


def _along(primitive: jex_core.Primitive) -> Callable[..., Any]:
    """A function along any axes, by a primitive along the last one."""

    def apply(x, axes):
        others = [axis for axis in range(x.ndim) if axis not in axes]
        order = [*others, *sorted(axes)]
        y = lax.transpose(x, order)
        if len(axes) > 1:
            size = math.prod(x.shape[axis] for axis in axes)
            y = lax.reshape(y, (*(x.shape[axis] for axis in others), size))
        y = lax.reshape(primitive.bind(y), tuple(x.shape[axis] for axis in order))
        return lax.transpose(y, np.argsort(order))

    return apply


def _log_softmax(x, axes=(-1,)):
    """`log_softmax` without `stop_gradient`, in programs that need no gradient of it."""
    shifted = x - x.max(axes, keepdims=True)
    return shifted - jnp.log(jnp.exp(shifted).sum(axes, keepdims=True))


def _log_sum_exp(x, axes=None, keepdims=False):
    """`logsumexp`. Infinite maxima are clamped, so that an infinity minus them is not NaN."""
    limits, keeps = jnp.finfo(x.dtype), axes is not None
    largest = lax.clamp(limits.min, x.max(axes, keepdims=keeps), limits.max)
    result = jnp.log(jnp.exp(x - largest).sum(axes, keepdims=keeps)) + largest
    return result if keepdims or not keeps else lax.squeeze(result, axes)


def _of_axes(
    example: Callable[..., Any], replacement: Callable[..., Any], when: Callable[..., bool]
) -> Pattern:
    """A function along axes, which are those of its `reduce_max`."""
    return Pattern(example, replacement, args=(_X,), when=when, reduction="reduce_max")


NATURAL_PATTERNS = (
    _of_float(jax.nn.relu6, _RELU6.bind),
    _of_float(jax.nn.leaky_relu, _LEAKY_RELU.bind, literals=1),
    _of_float(_leaky_relu_where_positive, _LEAKY_RELU.bind, literals=1),
    _of_float(_leaky_relu_by_maximum, _LEAKY_RELU.bind, literals=1, when_literals=_is_fraction),
    *(_of_float(example, lax.logistic) for example in _SIGMOIDS),
    _of_float(jax.nn.elu, _ELU.bind),
    _of_float(jax.nn.softplus, _SOFTPLUS.bind),
    _of_float(jax.nn.celu, _ELU.bind),
    _of_float(jax.nn.hard_tanh, _hard_tanh),
    _of_float(lambda x: 1 / jnp.sqrt(x), lax.rsqrt),
    *(
        _of_float(example, by_op, literals=1, when=_is_single, when_literals=_is_positive)
        for example, by_op in ((jax.nn.elu, _SCALED_ELU.bind), (jax.nn.celu, _celu_by_op))
    ),
    *(_of_float(example, _relu) for example in _RELUS),
    _of_float(_zeros_of_one_sign, lambda x: x),
    *(_of_float(example, GELU.bind) for example in GELUS),
    _of_axes(lambda x, axes=(-1,): jax.nn.softmax(x, axes), _along(SOFTMAX), is_wide),
    _of_axes(lambda x, axes=(-1,): jax.nn.log_softmax(x, axes), _along(_LOG_SOFTMAX), is_float),
    _of_axes(_log_softmax, _along(_LOG_SOFTMAX), is_float),
    _of_axes(lambda x, axes=(-1,): jax.nn.logsumexp(x, axes), _log_sum_exp, is_wide),
    _of_axes(
        lambda x, axes=(-1,): jax.nn.logsumexp(x, axes, keepdims=True),
        functools.partial(_log_sum_exp, keepdims=True),
        is_wide,
    ),
    _of_float(jax.nn.logsumexp, _log_sum_exp, when=is_wide),
    *quotients.PATTERNS,
    Pattern(batch_norm, BATCH_NORM.bind, args=(_X, *[_FEATURES] * 4, _NUMBER), when=_is_by_feature),
    *(
        Pattern(example, _square_of_size, args=(_X, _X), when=_is_single)
        for example in (
            lambda x, y: lax.square(size_of_parts(x, y)),
            lambda x, y: lax.integer_pow(size_of_parts(x, y), 2),
        )
    ),
    Pattern(_size, _SIZE_OF_PARTS.bind, args=(_X, _X), when=_is_single),
    _of_float(_clip, _clamp, literals=2, when_literals=lambda low, high: low <= high),
)


def _difference_times_itself(x, y):
    difference = x - y
    return difference * difference


def _of_positive(make_positive: Callable[..., Any]) -> Pattern:
    """`rsqrt` of a number that a sum or a maximum makes positive, as in a normalization."""
    return _of_float(
        lambda x, y: lax.rsqrt(make_positive(x, y)),
        lambda x, y: _RSQRT_OF_POSITIVE.bind(make_positive(x, y)),
        literals=1,
        when_literals=_is_positive,
    )


# Patterns that match once reductions keep their axes.
LATE_PATTERNS = (
    *(
        Pattern(example, _SQUARED_DIFFERENCE.bind, args=(_X, _X), when=_are_wide)
        for example in (
            lambda x, y: lax.square(x - y),
            lambda x, y: lax.integer_pow(x - y, 2),
            _difference_times_itself,
        )
    ),
    *map(_of_positive, (lax.add, lax.max)),
    # Losses of logarithms of sigmoids, which are negative softplus, have these forms.
    Pattern(lambda x, y: -x * -y, lax.mul, args=(_X, _X), when=is_float),
    Pattern(lambda x, y, z: x - y * -z, lambda x, y, z: x + y * z, args=(_X,) * 3, when=is_float),
    _of_float(lambda x: lax.neg(lax.neg(x)), lambda x: x),
    _of_float(_nan_of_one_kind, lambda x: x),
)
