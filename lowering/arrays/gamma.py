"""The logarithm of the gamma function in elementary functions, for runtimes that have none."""

import math

import jax
import jax.numpy as jnp
from jax import lax

# The coefficients for g = 7 of C. Lanczos, "A Precision Approximation of the Gamma Function", 1964,
# as P. Godfrey computed them.
_G = 7.0
_FIRST = 0.99999999999980993227684700473478
_COEFFICIENTS = (
    676.520368121885098567009190444019,
    -1259.13921672240287047156078755283,
    771.3234287776530788486528258894,
    -176.61502916214059906584551354,
    12.507343278686904814458936853,
    -0.13857109526572011689554707,
    9.984369578019570859563e-6,
    1.50563273514931155834e-7,
)


def lgamma(x: jax.Array) -> jax.Array:
    """The logarithm of the absolute value of the gamma function, of floats.

    Below one half it is reflected: gamma(x) gamma(1 - x) is pi / sin(pi x).
    """
    is_reflected = x < 0.5
    z = jnp.where(is_reflected, -x, x - 1)
    total = jnp.full_like(x, _FIRST)
    for i, coefficient in enumerate(_COEFFICIENTS, start=1):
        total = total + coefficient / (z + i)
    t = z + (_G + 0.5)
    log_t = math.log(_G + 0.5) + lax.log1p(z / (_G + 0.5))
    value = 0.5 * math.log(2 * math.pi) + (z + 0.5 - t / log_t) * log_t + lax.log(total)
    size = lax.abs(x)
    fraction = size - lax.floor(size)
    fraction = jnp.where(fraction > 0.5, 1 - fraction, fraction)
    log_sine = lax.log(lax.sin(math.pi * fraction))
    reflected = jnp.where(fraction == 0, jnp.inf, math.log(math.pi) - log_sine - value)
    result = jnp.where(is_reflected, reflected, value)
    return jnp.where(size == jnp.inf, jnp.inf, result)
