"""Limitations of elementwise primitives of one operand."""

from limitations.consumers import (
    LARGE_ANGLES,
    LARGE_ANGLES_OF_TFJS,
    LARGE_COMPLEX_ANGLES,
    LARGE_COMPLEX_ANGLES_OF_TFJS,
    LARGE_COMPLEX_LOGARITHMS,
    LARGE_LOGARITHMS,
    huge_numbers,
)
from limitations.limitation import Looser

_ROOTS = huge_numbers("takes roots above 2^126 by half as much too large", ("float32", "bfloat16"))

LIMITATIONS = {
    "sqrt": [_ROOTS],
    "rsqrt": [
        huge_numbers(
            "takes roots above 2^126 by half as much too large, and gives NaN for the inverse of "
            "the root of zero",
            ("float16", "bfloat16", "float32"),
        )
    ],
    **dict.fromkeys(("log", "log2"), (LARGE_LOGARITHMS,)),
    **dict.fromkeys(("sin", "cos"), (LARGE_ANGLES, LARGE_ANGLES_OF_TFJS)),
    "tan": [
        huge_numbers(
            "loses the digits of large angles, and the more of tangents near their poles",
            looser=Looser.MODERATE_WITH_FEWER_DIGITS,
        ),
        LARGE_COMPLEX_ANGLES_OF_TFJS,
    ],
    **dict.fromkeys(("asin", "acos", "asinh", "acosh", "log1p"), (LARGE_COMPLEX_LOGARITHMS,)),
    **dict.fromkeys(("exp", "exp2", "cosh"), (LARGE_COMPLEX_ANGLES,)),
    **dict.fromkeys(
        ("expm1", "sinh", "tanh"), (LARGE_COMPLEX_ANGLES, LARGE_COMPLEX_ANGLES_OF_TFJS)
    ),
    "logistic": [
        huge_numbers(
            "gives NaN for the logistic function beyond 2^90",
            ("float32", "bfloat16"),
            lambda case, params: case.startswith("domain_"),
        ),
        huge_numbers(
            "loses the digits of angles, and with them those of the logistic function at its poles",
            ("complex64",),
            lambda case, params: case.startswith("domain_"),
            looser=Looser.NEAR_ONE,
        ),
        LARGE_COMPLEX_ANGLES,
        LARGE_COMPLEX_ANGLES_OF_TFJS,
    ],
}
