"""Substitutes of the error functions."""

from lowering.ops.constants import constant
from lowering.ops.emission import emit, substitute
from lowering.ops.substitutes.polynomials import horner, within


@substitute("Erfc")
def _erfc(x):
    """Rational functions of the square, below 1 and above it.

    The coefficients are those of S. L. Moshier, Cephes, `ndtrf.c`, 1989.
    """
    size, square = emit("Abs", x), emit("Mul", x, x)
    small = emit("Sub", constant(1, x.dtype), emit("Mul", x, horner(_ERF, square)))
    safe = emit("Maximum", size, constant(1, x.dtype))
    q = emit("RealDiv", constant(1, x.dtype), safe)
    z = emit("Exp", emit("Neg", emit("Mul", safe, safe)))
    y = emit("Mul", q, q)
    is_middle = emit("Less", safe, constant(2, x.dtype))
    factor = emit("SelectV2", is_middle, horner(_ERFC_MIDDLE, y), horner(_ERFC_TAIL, y))
    tail = emit("Mul", emit("Mul", z, q), factor)
    is_negative = emit("Less", x, constant(0, x.dtype))
    tail = emit("SelectV2", is_negative, emit("Sub", constant(2, x.dtype), tail), tail)
    return emit("SelectV2", emit("Less", size, constant(1, x.dtype)), small, tail)


@substitute("Erf")
def _erf(x):
    """A rational function. At the end of its interval, and beyond, the result rounds to 1."""
    x = within(x, _ERF_END)
    square = emit("Mul", x, x)
    numerator, denominator = (horner(p, square) for p in (_ERF_NUMERATOR, _ERF_DENOMINATOR))
    return within(emit("RealDiv", emit("Mul", x, numerator), denominator), 1)


# erf(x) / x on [0, 4] in x^2, by least squares of the relative error, which is below 2.5e-8.
_ERF_END = 4.0
_ERF_NUMERATOR = (
    1.986783329375405e-06,
    0.0002845668323748296,
    0.003883367458699494,
    0.05310181587709083,
    0.19354555627445652,
    1.1283791392993587,
)
_ERF_DENOMINATOR = (
    3.742023486824773e-05,
    0.0011855776637082437,
    0.015207296422586893,
    0.11535020895581548,
    0.5048578386291882,
    1.0,
)

# erf(x) / x on [0, 1], and exp(x^2) x erfc(x) on [1, 2] and above, in x^2 and x^-2.
_ERF = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710e0,
)

_ERFC_MIDDLE = (
    2.326819970068386e-2,
    -1.387039388740657e-1,
    3.687424674597105e-1,
    -5.824733027278666e-1,
    6.210004621745983e-1,
    -4.944515323274145e-1,
    3.404879937665872e-1,
    -2.741127028184656e-1,
    5.638259427386472e-1,
)

_ERFC_TAIL = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)
