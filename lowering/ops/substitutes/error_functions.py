"""Substitutes of the error functions."""

import numpy as np

from lowering.ops.constants import constant
from lowering.ops.emission import emit, substitute
from lowering.ops.substitutes.polynomials import horner, within


@substitute("Erfc")
def _erfc(x):
    """The complement of the error function near zero, and a function of its own elsewhere."""
    size = emit("Abs", x)
    center, tail = _center(x), _tail(size)
    is_negative = emit("Less", x, constant(0, x.dtype))
    tail = emit("SelectV2", is_negative, emit("Sub", constant(2, x.dtype), tail), tail)
    is_small = emit("Less", size, constant(1, x.dtype))
    return emit("SelectV2", is_small, emit("Sub", constant(1, x.dtype), center), tail)


@substitute("Erf")
def _erf(x):
    """A rational function. At the end of its interval, and beyond, the result rounds to 1.

    One with the digits of float64 would be long, so there it is made of the complement.
    """
    if x.dtype == np.float64:
        size, one = emit("Abs", x), constant(1, x.dtype)
        tail = emit("Mul", emit("Sign", x), emit("Sub", one, _tail(size)))
        return emit("SelectV2", emit("Less", size, one), _center(x), tail)
    x = within(x, _ERF_END)
    square = emit("Mul", x, x)
    numerator, denominator = (horner(coefficients, square) for coefficients in _ERF)
    return within(emit("RealDiv", emit("Mul", x, numerator), denominator), 1)


def _center(x):
    """erf(x) where the size of x is below 1.

    The coefficients are those of S. L. Moshier, Cephes, `ndtrf.c` and `ndtr.c`, 1989.
    """
    square = emit("Mul", x, x)
    is_double = x.dtype == np.float64
    factor = _quotient(_CENTER_64, square) if is_double else horner(_CENTER_32, square)
    return emit("Mul", x, factor)


def _tail(size):
    """erfc(size) where the size is 1 or more, by the same source."""
    if size.dtype == np.float64:
        one, end = constant(1, size.dtype), constant(_ERFC_END_64, size.dtype)
        size = emit("ClipByValue", size, one, end)
        is_middle = emit("Less", size, constant(8, size.dtype))
        middle, far = (_quotient(table, size) for table in (_MIDDLE_64, _FAR_64))
        factor = emit("SelectV2", is_middle, middle, far)
        return emit("Mul", emit("Exp", emit("Neg", emit("Mul", size, size))), factor)
    safe = emit("Maximum", size, constant(1, size.dtype))
    q = emit("RealDiv", constant(1, size.dtype), safe)
    z = emit("Exp", emit("Neg", emit("Mul", safe, safe)))
    y = emit("Mul", q, q)
    is_middle = emit("Less", safe, constant(2, size.dtype))
    factor = emit("SelectV2", is_middle, horner(_MIDDLE_32, y), horner(_FAR_32, y))
    return emit("Mul", emit("Mul", z, q), factor)


def _quotient(table, x):
    """A rational function, by the coefficients of its numerator and its denominator."""
    numerator, denominator = table
    return emit("RealDiv", horner(numerator, x), horner(denominator, x))


# erf(x) / x on [0, 1] in x^2, and exp(x^2) erfc(x) on [1, 8] and above, which ends in zeros.
_ERFC_END_64 = 30.0
_CENTER_64 = (
    (
        9.60497373987051638749e0,
        9.00260197203842689217e1,
        2.23200534594684319226e3,
        7.00332514112805075473e3,
        5.55923013010394962768e4,
    ),
    (
        1.0,
        3.35617141647503099647e1,
        5.21357949780152679795e2,
        4.59432382970980127987e3,
        2.26290000613890934246e4,
        4.92673942608635921086e4,
    ),
)
_MIDDLE_64 = (
    (
        2.46196981473530512524e-10,
        5.64189564831068821977e-1,
        7.46321056442269912687e0,
        4.86371970985681366614e1,
        1.96520832956077098242e2,
        5.26445194995477358631e2,
        9.34528527171957607540e2,
        1.02755188689515710272e3,
        5.57535335369399327526e2,
    ),
    (
        1.0,
        1.32281951154744992508e1,
        8.67072140885989742329e1,
        3.54937778887819891062e2,
        9.75708501743205489753e2,
        1.82390916687909736289e3,
        2.24633760818710981792e3,
        1.65666309194161350182e3,
        5.57535340817727675546e2,
    ),
)
_FAR_64 = (
    (
        5.64189583547755073984e-1,
        1.27536670759978104416e0,
        5.01905042251180477414e0,
        6.16021097993053585195e0,
        7.40974269950448939160e0,
        2.97886665372100240670e0,
    ),
    (
        1.0,
        2.26052863220117276590e0,
        9.39603524938001434673e0,
        1.20489539808096656605e1,
        1.70814450747565897222e1,
        9.60896809063285878198e0,
        3.36907645100081516050e0,
    ),
)

# erf(x) / x on [0, 4] in x^2, by least squares of the relative error, which is below 2.5e-8.
_ERF_END = 4.0
_ERF = (
    (
        1.986783329375405e-06,
        0.0002845668323748296,
        0.003883367458699494,
        0.05310181587709083,
        0.19354555627445652,
        1.1283791392993587,
    ),
    (
        3.742023486824773e-05,
        0.0011855776637082437,
        0.015207296422586893,
        0.11535020895581548,
        0.5048578386291882,
        1.0,
    ),
)

# erf(x) / x on [0, 1], and exp(x^2) x erfc(x) on [1, 2] and above, in x^2 and x^-2.
_CENTER_32 = (
    7.853861353153693e-5,
    -8.010193625184903e-4,
    5.188327685732524e-3,
    -2.685381193529856e-2,
    1.128358514861418e-1,
    -3.761262582423300e-1,
    1.128379165726710e0,
)

_MIDDLE_32 = (
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

_FAR_32 = (
    -1.047766399936249e1,
    1.297719955372516e1,
    -7.495518717768503e0,
    2.921019019210786e0,
    -1.015265279202700e0,
    4.218463358204948e-1,
    -2.820767439740514e-1,
    5.641895067754075e-1,
)
