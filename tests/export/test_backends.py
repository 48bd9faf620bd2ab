"""Functions of floats in TF.js, by all of its backends: graphics cards have few digits of some."""

import jax
import jax.numpy as jnp
import numpy as np

RANGE = np.linspace(-9, 9, 1001).astype(np.float32)
ANGLES = np.linspace(-2000, 2000, 1001).astype(np.float32)
UNIT = np.linspace(-0.999, 0.999, 501).astype(np.float32)
POSITIVE = np.geomspace(1e-6, 1e6, 501).astype(np.float32)

OF_ALL = (
    *(jnp.sin, jnp.cos, jnp.tanh, jnp.sinh, jnp.cosh, jnp.exp, jnp.expm1, jnp.arctan, jnp.arcsinh),
    *(jax.nn.sigmoid, jax.nn.silu, jax.nn.gelu, jax.nn.softplus, jax.nn.elu, jax.nn.selu),
    *(jax.scipy.special.erf, jax.scipy.special.erfc, jnp.square, jnp.cbrt, jax.nn.softmax),
)
OF_UNIT = (jnp.tan, jnp.arcsin, jnp.arccos, jnp.arctanh, jax.scipy.special.erfinv)
OF_POSITIVE = (jnp.log, jnp.log1p, jnp.log2, jnp.sqrt, jax.lax.rsqrt, jnp.reciprocal)


def test_functions_of_floats(check):
    """As near as the evaluation of whole models asks for."""

    def fun(x, angles, unit, positive):
        return [
            *(f(x) for f in OF_ALL),
            *(f(angles) for f in (jnp.sin, jnp.cos)),
            *(f(unit) for f in OF_UNIT),
            *(f(positive) for f in OF_POSITIVE),
            *(jnp.arctan2(unit, unit[::-1]), positive**1.7, positive**unit),
        ]

    check(fun, RANGE, ANGLES, UNIT, POSITIVE, of_largest=1e-5)


def test_sines_have_their_digits_near_zeros(check):
    multiples = np.pi * np.arange(-300, 300, 7)
    near = (multiples[:, None] + np.geomspace(1e-5, 1, 8)).astype(np.float32)
    check(jnp.sin, near, rtol=1e-6, of_largest=1e-11)
    check(jnp.cos, (near + np.pi / 2).astype(np.float32), rtol=1e-6, of_largest=1e-11)
    check(jnp.tan, near, rtol=2e-6, of_largest=1e-11)
