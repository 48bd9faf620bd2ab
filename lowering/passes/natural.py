"""Groups of equations that are one op where NaN and the signs of zeros need not be JAX's.

JAX writes activations, clips and quotients out. Natural targets get the op that TensorFlow, its
converters and people know them by; see `passes.fusion` for how groups are written and replaced.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import registry
from lowering.arrays import complex_math
from lowering.passes.fusion import primitive_like_operand
from lowering.passes.patterns import Group, Pattern, Search

_RELU6 = primitive_like_operand("relu6")
_LEAKY_RELU = primitive_like_operand("leaky_relu")
_ELU = primitive_like_operand("elu")
_SOFTPLUS = primitive_like_operand("softplus")
_LOG_SOFTMAX = primitive_like_operand("log_softmax")
_FLOOR_DIVIDE = primitive_like_operand("floor_divide")
_FLOOR_MOD = primitive_like_operand("floor_mod")
_WINDOW_MEAN = registry.new_primitive("reduce_window_mean")

_X = jax.ShapeDtypeStruct((2, 3), np.float32)
_NUMBER = jax.ShapeDtypeStruct((), np.float32)
_INTEGERS = jax.ShapeDtypeStruct((2, 3), np.int32)
_INTEGER = jax.ShapeDtypeStruct((), np.int32)


def _is_float(x: Any, *others: Any) -> bool:
    return jnp.issubdtype(x.dtype, jnp.floating) and np.dtype(x.dtype).itemsize > 1


def _is_single(x: Any, *others: Any) -> bool:
    return x.dtype == np.float32


def _is_signed(x: Any, *others: Any) -> bool:
    return x.dtype in (np.int32, np.int64)


def _is_divisor(y: Any) -> bool:
    """Whether TensorFlow divides by a number as JAX does."""
    return y not in (0, -1)


def _of_float(
    example: Callable[..., Any], primitive: jex_core.Primitive, literals: int = 0
) -> Pattern:
    """An activation of floats; its last operands are literals."""
    return Pattern(
        example,
        primitive.bind,
        args=(_X, *[_NUMBER] * literals),
        when=_is_float,
        literals=tuple(range(1, 1 + literals)),
    )


def _leaky_relu_where_positive(x, alpha):
    return jnp.where(x > 0, x, alpha * x)


def _gelu(x):
    return 0.5 * x * (1 + lax.erf(x * np.sqrt(0.5).astype(x.dtype)))


def _size(x, y):
    return lax.abs(lax.complex(x, y))


def _clip(x, low, high):
    return lax.min(high, lax.max(low, x))


def _clamp(x, low, high):
    return lax.clamp(low, x, high)


NATURAL_PATTERNS = (
    _of_float(jax.nn.relu6, _RELU6),
    _of_float(jax.nn.leaky_relu, _LEAKY_RELU, literals=1),
    _of_float(_leaky_relu_where_positive, _LEAKY_RELU, literals=1),
    _of_float(jax.nn.elu, _ELU),
    _of_float(jax.nn.softplus, _SOFTPLUS),
    Pattern(jax.nn.log_softmax, _LOG_SOFTMAX.bind, args=(_X,), when=_is_float),
    Pattern(lambda x: jax.nn.gelu(x, approximate=False), _gelu, args=(_X,), when=_is_float),
    Pattern(
        jnp.floor_divide,
        _FLOOR_DIVIDE.bind,
        args=(_INTEGERS, _INTEGER),
        when=_is_signed,
        literals=(1,),
        when_literals=_is_divisor,
    ),
    Pattern(
        jnp.remainder,
        _FLOOR_MOD.bind,
        args=(_INTEGERS, _INTEGER),
        when=_is_signed,
        literals=(1,),
        when_literals=_is_divisor,
    ),
    Pattern(_size, complex_math.size_of_parts, args=(_X, _X), when=_is_single),
    Pattern(
        _clip,
        _clamp,
        args=(_X, _NUMBER, _NUMBER),
        when=_is_float,
        literals=(1, 2),
        when_literals=lambda low, high: low <= high,
    ),
)


def _mean_of_windows(div: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """A sum over windows, divided by their size."""
    total = group.maker(div.invars[0], "reduce_window_sum")
    if total is None or not isinstance(div.invars[1], jex_core.Literal):
        return None
    sizes = total.params["window_dimensions"]
    if not all(isinstance(size, int) for size in sizes) or div.invars[1].val != math.prod(sizes):
        return None
    return [div.replace(primitive=_WINDOW_MEAN, invars=total.invars, params=total.params)]


NATURAL_SEARCHES: dict[str, Search] = {"div": _mean_of_windows}
