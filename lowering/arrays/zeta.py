"""Hurwitz's zeta function and the polygamma functions, in the steps in which XLA computes them.

Far from the comfortable range these steps are not accurate, but the results are those of JAX.
TensorFlow's own kernels take another way there, and for large negative arguments never end.
"""

import jax.numpy as jnp
from jax import lax

# B(2k) / (2k)! for k from 12 down to 1, where B(2k) are the Bernoulli numbers.
_BERNOULLI = tuple(
    1 / x
    for x in (
        -7.1661652561756670113e18,
        1.8152105401943546773e17,
        -4.5979787224074726105e15,
        1.1646782814350067249e14,
        -2.950130727918164224e12,
        7.47242496e10,
        -1.8924375803183791606e9,
        47900160.0,
        -1209600.0,
        30240.0,
        -720.0,
        12.0,
    )
)


def zeta(s, q):
    """The sum of (q + k)^-s over all k >= 0, by the formula of Euler and Maclaurin.

    Ten terms are added, and the others are replaced by their integral with 12 corrections; see
    S. L. Moshier, "Methods and Programs for Mathematical Functions", 1989 (Cephes, `zeta.c`). As in
    JAX, the result is NaN for s < 1, and for q <= 0 unless s is whole. If q is a pole, it is
    infinite for even s and NaN for odd s.
    """
    total = lax.pow(q, -s)
    a = q
    for _ in range(9):
        a = a + 1
        total = total + lax.pow(a, -s)
    a = a + 1
    term = lax.pow(a, -s)
    inverse_square = 1 / (a * a)
    correction = jnp.zeros_like(a)
    for k, coefficient in zip(range(22, 0, -2), _BERNOULLI):
        correction = (s + k) * (s + (k - 1)) * (inverse_square * (correction + coefficient))
    integral = total + term * a / (s - 1)
    corrections = 0.5 + s / a * (_BERNOULLI[-1] + correction)
    # XLA multiplies and adds with one rounding, so that no product overflows before it is added.
    keeps = jnp.isinf(integral) & jnp.isfinite(term) & jnp.isfinite(corrections)
    value = jnp.where(keeps, integral, integral + term * corrections)

    is_whole = s == lax.floor(s)
    value = jnp.where((s < 1) | (q <= 0) & ~is_whole, jnp.nan, value)
    is_even = is_whole & (lax.rem(s, jnp.full_like(s, 2)) == 0)
    pole = jnp.where(is_even, jnp.inf, jnp.asarray(jnp.nan, s.dtype))
    value = jnp.where((q <= 0) & (q == lax.floor(q)), pole, value)
    return jnp.where(s == 1, jnp.inf, value)


def polygamma(n, x):
    """The n-th derivative of digamma, which is (-1)^(n+1) n! zeta(n + 1, x) for n > 0."""
    s = n + 1
    factor = (lax.rem(n, jnp.full_like(n, 2)) * 2 - 1) * lax.exp(lax.lgamma(s))
    value = jnp.where(n == 0, lax.digamma(x), factor * zeta(s, x))
    return jnp.where((n != lax.floor(n)) | (n < 0), jnp.nan, value)
