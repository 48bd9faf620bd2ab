"""Special functions."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import jax_compat, targets
from lowering.arrays import bessel, floats, gamma, precise, zeta
from lowering.ops import cast, constant, emit, extrema
from lowering.registry import Trait, decomposition, rule
from lowering.rules.unary import register_ops
from lowering.targets import CONSUMER, Mode

register_ops(
    {
        "erf": "Erf",
        "erfc": "Erfc",
        "bessel_i0e": "BesselI0e",
    }
)


def _has_doubles(ctx):
    """Whether float64 costs little: only where TensorFlow's kernels run the ops."""
    return ctx.mode is not Mode.COMPILED and targets.current().has_tensorflow_kernels


def _precisely(ctx, *operands, fun):
    """The exponential of a difference of logarithms, which loses the digits of large ones."""
    fun = fun if not _has_doubles(ctx) else precise.outside_of_loops(fun)
    return ctx.lower(floats.at_least_float32(fun), *operands, avals=ctx.in_avals)


# TensorFlow's kernels stop after fewer steps, and JAX's versions differ at infinity.
for _name, _fun in jax_compat.SPECIAL_FUNCTIONS.items():
    decomposition(_name, traits=Trait.LONG)(floats.at_least_float32(_fun))
    if _name.startswith("igamma"):
        rule(_name, dtypes=(np.float32, np.float64))(functools.partial(_precisely, fun=_fun))

for _fun in (zeta.zeta, zeta.polygamma):
    _traits = Trait.ELEMENTWISE | Trait.LONG
    decomposition(_fun.__name__, traits=_traits)(floats.at_least_float32(_fun))


@rule("lgamma", traits=Trait.ELEMENTWISE)
def lgamma(ctx, x):
    """TensorFlow's kernel for float32 is off by up to 2 units in the last place."""
    is_widened = x.dtype == np.float32 and _has_doubles(ctx)
    return cast(emit("Lgamma", cast(x, np.float64) if is_widened else x), x.dtype)


@rule("digamma", traits=Trait.ELEMENTWISE)
def digamma(ctx, x):
    """Terms of magnitude 1 cancel near the zeros: TensorFlow's kernel adds them in float64.

    For float64 itself the kernel is not precise enough.
    """
    if x.dtype == np.float64 and _has_doubles(ctx):
        return ctx.lower(_digamma, x, avals=ctx.in_avals)
    is_widened = x.dtype == np.float32 and _has_doubles(ctx)
    value = cast(emit("Digamma", cast(x, np.float64) if is_widened else x), x.dtype)
    if np.isnan(jax_compat.DIGAMMA_AT_ZERO):
        return value
    is_zero = emit("Equal", x, constant(0, x.dtype))
    return emit("SelectV2", is_zero, constant(jax_compat.DIGAMMA_AT_ZERO, x.dtype), value)


def _digamma(x):
    """In float64, with the value at zero of this version of JAX."""
    value = precise.digamma(x)
    if np.isnan(jax_compat.DIGAMMA_AT_ZERO):
        return value
    return jnp.where(x == 0, np.array(jax_compat.DIGAMMA_AT_ZERO, x.dtype), value)


def _digamma_of_any_log(x):
    """Large numbers have their logarithm.

    See `tflite.runtime_quirks.logarithms_of_the_largest_numbers`.
    """
    is_large = x > 2.0**100
    of_large = lax.log(0.25 * x) + np.array(np.log(4), x.dtype)
    # The product is infinite where x is, and less than the logarithm elsewhere.
    of_large = lax.max(of_large, x * np.finfo(x.dtype).tiny)
    return jnp.where(is_large, of_large, _digamma(jnp.where(is_large, jnp.ones((), x.dtype), x)))


for _name, _fun in (
    ("lgamma", gamma.lgamma),
    ("digamma", _digamma_of_any_log),
    ("bessel_i0e", bessel.i0e),
    ("bessel_i1e", bessel.i1e),
):
    decomposition(_name, target=CONSUMER, traits=Trait.LONG)(floats.at_least_float32(_fun))


@rule("bessel_i1e", traits=Trait.ELEMENTWISE)
def bessel_i1e(ctx, x):
    """TensorFlow's kernel gives zero for negative zero, which is its own result."""
    zero = emit("Equal", x, constant(0, x.dtype))
    return emit("SelectV2", zero, x, emit("BesselI1e", x))


@rule("erf", dtypes=(np.float64,))
def erf(ctx, x):
    """TensorFlow's kernel gives NaN where x * x overflows. Beyond 6, erf(x) is 1 anyway."""
    limit = np.array(6.0)
    return emit("Erf", extrema.minimum(extrema.maximum(x, -limit), limit))


# Coefficients of polynomials, the highest first, for the central, the middle and the tail region:
# M. Giles, "Approximating the erfinv function", GPU Computing Gems Jade Edition, 2011.
_ERF_INV_32 = """
    2.81022636e-08 3.43273939e-07 -3.5233877e-06 -4.39150654e-06 0.00021858087 -0.00125372503
    -0.00417768164 0.246640727 1.50140941

    -0.000200214257 0.000100950558 0.00134934322 -0.00367342844 0.00573950773 -0.0076224613
    0.00943887047 1.00167406 2.83297682
"""
_ERF_INV_64 = """
    -3.6444120640178196996e-21 -1.685059138182016589e-19 1.2858480715256400167e-18
    1.115787767802518096e-17 -1.333171662854620906e-16 2.0972767875968561637e-17
    6.6376381343583238325e-15 -4.0545662729752068639e-14 -8.1519341976054721522e-14
    2.6335093153082322977e-12 -1.2975133253453532498e-11 -5.4154120542946279317e-11
    1.051212273321532285e-09 -4.1126339803469836976e-09 -2.9070369957882005086e-08
    4.2347877827932403518e-07 -1.3654692000834678645e-06 -1.3882523362786468719e-05
    0.0001867342080340571352 -0.00074070253416626697512 -0.0060336708714301490533
    0.24015818242558961693 1.6536545626831027356

    2.2137376921775787049e-09 9.0756561938885390979e-08 -2.7517406297064545428e-07
    1.8239629214389227755e-08 1.5027403968909827627e-06 -4.013867526981545969e-06
    2.9234449089955446044e-06 1.2475304481671778723e-05 -4.7318229009055733981e-05
    6.8284851459573175448e-05 2.4031110387097893999e-05 -0.0003550375203628474796
    0.00095328937973738049703 -0.0016882755560235047313 0.0024914420961078508066
    -0.0037512085075692412107 0.005370914553590063617 1.0052589676941592334
    3.0838856104922207635

    -2.7109920616438573243e-11 -2.5556418169965252055e-10 1.5076572693500548083e-09
    -3.7894654401267369937e-09 7.6157012080783393804e-09 -1.4960026627149240478e-08
    2.9147953450901080826e-08 -6.7711997758452339498e-08 2.2900482228026654717e-07
    -9.9298272942317002539e-07 4.5260625972231537039e-06 -1.9681778105531670567e-05
    7.5995277030017761139e-05 -0.00021503011930044477347 -0.00013871931833623122026
    1.0103004648645343977 4.8499064014085844221
"""


@decomposition("erf_inv", traits=Trait.ELEMENTWISE | Trait.LONG)
def erf_inv(x):
    """A polynomial in the logarithm of 1 - x^2, by region.

    TensorFlow's Erfinv shifts its argument to [0, 1] and loses the digits of small ones.
    """
    if x.dtype in (jnp.float16, jnp.bfloat16):
        return erf_inv(x.astype(jnp.float32)).astype(x.dtype)
    w = -lax.log1p(x * -x)
    root = lax.sqrt(w)
    if x.dtype == jnp.float32:
        centre, middle = _rows(_ERF_INV_32)
        factor = jnp.where(
            w < 5, precise.polynomial(centre, w - 2.5), precise.polynomial(middle, root - 3)
        )
    else:
        centre, middle, tail = _rows(_ERF_INV_64)
        outer = jnp.where(
            w < 16, precise.polynomial(middle, root - 3.25), precise.polynomial(tail, root - 5)
        )
        factor = jnp.where(w < 6.25, precise.polynomial(centre, w - 3.125), outer)
    return x * jnp.where(lax.abs(x) == 1, jnp.asarray(jnp.inf, x.dtype), factor)


def _rows(text):
    """The numbers of each paragraph of a text."""
    return [list(map(float, row.split())) for row in text.split("\n\n")]
