"""Modified Bessel functions, scaled by exp(-|x|), in arithmetic, for runtimes that have none.

The series are Chebyshev's, of the functions up to 8 and of their products with sqrt(x) above it,
to the precision of float32. Their coefficients are integrals, computed with 30 digits.
"""

import jax
import jax.numpy as jnp
from jax import lax

_I0_SMALL = """
    0.338397637205 -0.304682672343 0.171620901522 -0.094901097048 0.0493052842397 -0.0237374148059
    0.0105464603946 -0.00432430999505 0.00163947561694 -0.000576375574539 0.000188502885096
    -5.75419501008e-5 1.64484480707e-5 -4.41673835846e-6 1.11738753912e-6 -2.67079385394e-7
    6.04699502254e-8 -1.30002500999e-8
"""
_I0_LARGE = """
    0.402245205507 0.00336911647826 6.88975834692e-5 2.89137052083e-6 2.04891858947e-7
    2.2666689905e-8 3.39623202571e-9 4.94060238822e-10
"""
_I1_SMALL = """
    0.126293593222 -0.176416518358 0.10264365869 -0.0529459812081 0.0247264490306 -0.0105640848946
    0.00415642294431 -0.00151357245063 0.000512285956169 -0.000161760815826 4.78156510755e-5
    -1.3273163656e-5 3.47025130814e-6 -8.5687202647e-7 2.00329475355e-7 -4.4450591288e-8
    9.3815373865e-9 -1.88724975172e-9
"""
_I1_LARGE = """
    0.389288117509 -0.00976109749136 -0.000110588938763 -3.88256480888e-6 -2.51223623787e-7
    -2.63146884689e-8 -3.83538038596e-9 -5.5897434622e-10
"""


def i0e(x: jax.Array) -> jax.Array:
    """exp(-|x|) I0(x) of float32."""
    return _scaled(lax.abs(x), _I0_SMALL, _I0_LARGE)


def i1e(x: jax.Array) -> jax.Array:
    """exp(-|x|) I1(x) of float32."""
    size = lax.abs(x)
    # The first series is that of the quotient by x.
    factor = jnp.where(size <= 8, size, jnp.ones((), x.dtype))
    return lax.sign(x) * factor * _scaled(size, _I1_SMALL, _I1_LARGE)


def _scaled(size, small, large):
    above = jnp.maximum(size, 8)
    # Some kernels give other roots of the largest numbers than of their quarters.
    of_large = 0.5 * _series(large, 16 / above - 1) / lax.sqrt(0.25 * above)
    return jnp.where(size <= 8, _series(small, jnp.minimum(size, 8) / 4 - 1), of_large)


def _series(coefficients, t):
    """A sum of Chebyshev polynomials of t in [-1, 1] (C. W. Clenshaw, 1955)."""
    first, *rest = map(float, coefficients.split())
    later, latest = jnp.zeros_like(t), jnp.zeros_like(t)
    for coefficient in reversed(rest):
        later, latest = 2 * t * later - latest + coefficient, later
    return t * later - latest + first
