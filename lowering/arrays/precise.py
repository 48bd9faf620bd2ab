"""Functions that are nearer to the exact ones than what TensorFlow's kernels give.

The kernels for `log` and `digamma` of float64 numbers are off by up to 1.5 and 7 units in the last
place (of 1, for `digamma`). Functions in which such numbers cancel or are multiplied lose more
digits than JAX's.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import jax_compat

# Coefficients of log((1 + s) / (1 - s)), the highest power of s^2 first: Sun Microsystems, fdlibm,
# `e_log.c`, 1993.
_LOG = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
# The first part of log(2) has 32 bits, so that whole multiples of it are exact.
_LOG_2 = 6.93147180369123816490e-01, 1.90821492927058770002e-10

# A rational function of z = y^-2 on [0, 1], the highest power first: it interpolates
# (log(y) - 1 / (2 y) - digamma(y)) / z, which begins with 1 / 12 - z / 120 (Abramowitz and Stegun,
# 6.3.18), at 19 Chebyshev points, where mpmath gave its values. Its error is below 7e-18.
_DIGAMMA_NUMERATOR = (
    0.0051183812281160911,
    0.55946968829671308,
    8.7656837811835602,
    45.06338330045324,
    99.05280378458767,
    104.71671535031724,
    55.839471475837916,
    14.938219997644238,
    1.8590891021589137,
    0.083333333333332453,
)
_DIGAMMA_DENOMINATOR = (
    0.22130954034074006,
    11.439470514538509,
    138.73285304362796,
    630.04816100585781,
    1294.9691534276665,
    1317.7097389846735,
    687.20175188198806,
    181.45192784786925,
    22.409069225898997,
    1.0,
)


def log(x: jax.Array) -> jax.Array:
    """The logarithm, by the method of fdlibm; zeros, infinities and the like are the kernel's."""
    bits = lax.bitcast_convert_type(x, jnp.int64)
    # An exponent k for which x / 2^k is in [sqrt(1/2), sqrt(2)).
    half = np.array(np.sqrt(0.5)).view(np.int64)
    steps = lax.shift_right_arithmetic(bits - half, jnp.full_like(bits, 52))
    f = lax.bitcast_convert_type(bits - (steps << 52), jnp.float64) - 1
    k = lax.convert_element_type(steps, jnp.float64)
    s = f / (2 + f)
    square = s * s
    series = square * polynomial(_LOG, square)
    half_square = 0.5 * f * f
    low = half_square - (s * (half_square + series) + k * _LOG_2[1])
    value = k * _LOG_2[0] - (low - f)
    is_usual = (x >= np.finfo(np.float64).tiny) & (x < jnp.inf)
    return jnp.where(is_usual, value, lax.log(x))


def digamma(x: jax.Array) -> jax.Array:
    """The derivative of the logarithm of the gamma function; NaN at zero and all other poles.

    From 1 on it is the logarithm and a rational function. Below, digamma(x) is
    digamma(x + 1) - 1 / x, or digamma(1 - x) - pi / tan(pi x) if x is negative.
    """
    is_positive = x > 0
    size = lax.abs(x)
    y = jnp.where(is_positive & (x >= 1), x, 1 + size)
    inverse = 1 / y
    z = inverse * inverse
    ratio = polynomial(_DIGAMMA_NUMERATOR, z) / polynomial(_DIGAMMA_DENOMINATOR, z)
    value = lax.log(y) - (0.5 * inverse + z * ratio)
    # The tangent of pi times the distance to the nearest pole, which has the sign of x beside it.
    distance = x - lax.floor(x)
    is_right = distance < 0.5
    distance = jnp.where(is_right, distance, lax.ceil(x) - x)
    is_near = distance < 0.25
    angle = np.pi * jnp.where(is_near, distance, 0.5 - distance)
    sine, cosine = lax.sin(angle), lax.cos(angle)
    cotangent = jnp.where(is_near, cosine, sine) / jnp.where(is_near, sine, cosine)
    pi = jnp.full_like(x, np.pi)
    reflected = value - jnp.where(is_right, pi, -pi) * cotangent
    reflected = jnp.where(distance == 0, jnp.nan, reflected)
    positive = jnp.where(x < 1, value - 1 / x, value)
    return jnp.where(is_positive, positive, reflected)


def outside_of_loops(fun: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """A function of arrays of one shape and dtype, more precise in what is outside of its loops.

    That is computed in float64, and with logarithms by `log` if all of it was float64 before.

    Args:
      fun: a function of float32 or float64 numbers without branches.
    """

    def replaced(*operands: jax.Array) -> jax.Array:
        dtype = operands[0].dtype
        if dtype == jnp.float64:
            with_log = _substitute(fun, lambda eqn: log if _is_log(eqn, operands[0]) else None)
            return with_log(*operands)
        equations = jax.make_jaxpr(fun)(*operands).eqns
        loops = iter([_narrow(eqn) for eqn in equations if eqn.primitive.name == "while"])

        def substitute(eqn: jex_core.JaxprEqn) -> Callable[..., Any] | None:
            if eqn.primitive.name == "exp":
                return _exp_in_float32
            return next(loops) if eqn.primitive.name == "while" else None

        wide = _substitute(fun, substitute)
        result = wide(*(lax.convert_element_type(x, jnp.float64) for x in operands))
        return lax.convert_element_type(result, dtype)

    return replaced


def _substitute(
    fun: Callable[..., jax.Array],
    substitute: Callable[[jex_core.JaxprEqn], Callable[..., Any] | None],
) -> Callable[..., jax.Array]:
    """A function with other functions in the place of the equations that have a substitute."""

    def replaced(*operands: jax.Array) -> jax.Array:
        program = jax.make_jaxpr(fun)(*operands)
        eqns = []
        for eqn in program.eqns:
            other = substitute(eqn)
            if other is not None:
                inputs = [jax.ShapeDtypeStruct(x.aval.shape, x.aval.dtype) for x in eqn.invars]
                (call,) = jax.make_jaxpr(jax.jit(other))(*inputs).eqns
                eqn = call.replace(invars=eqn.invars, outvars=eqn.outvars)
            eqns.append(eqn)
        variables = program.jaxpr.invars, program.jaxpr.outvars
        program = jax_compat.with_equations(program, *variables, eqns)
        (result,) = jex_core.jaxpr_as_fun(program)(*operands)
        return result

    return replaced


def _is_log(eqn: jex_core.JaxprEqn, x: jax.Array) -> bool:
    """Whether an equation is a logarithm of an array like `x`."""
    return eqn.primitive.name == "log" and eqn.outvars[0].aval.shape == x.shape


def _exp_in_float32(x: jax.Array) -> jax.Array:
    """The exponential of float64 numbers, which is zero where float32 has no normal number for it.

    JAX's results are zero there, even if a division by a tiny number follows.
    """
    least = np.log(np.finfo(np.float32).tiny)
    is_zero = lax.convert_element_type(x, jnp.float32) <= least
    return jnp.where(is_zero, jnp.zeros_like(x), lax.exp(x))


def _narrow(loop: jex_core.JaxprEqn) -> Callable[..., Sequence[jax.Array]]:
    """A loop on float32 numbers as a function of float64 numbers."""
    inputs = [x.aval.dtype for x in loop.invars]

    def run(*operands: jax.Array) -> Sequence[jax.Array]:
        operands = tuple(map(lax.convert_element_type, operands, inputs))
        results = loop.primitive.bind(*operands, **loop.params)
        wide = {np.dtype(np.float32): np.dtype(np.float64)}
        return [lax.convert_element_type(x, wide.get(x.dtype, x.dtype)) for x in results]

    return run


def polynomial(coefficients: Sequence[float], x: jax.Array) -> jax.Array:
    """The value of a polynomial at `x`, by the coefficients of its powers, the highest first."""
    value = jnp.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        value = value * x + c
    return value
