"""Limitations of elementwise primitives of one operand."""

import dataclasses

from limitations.consumers import (
    LARGE_ANGLES,
    LARGE_ANGLES_OF_TFJS,
    LARGE_COMPLEX_ANGLES,
    LARGE_COMPLEX_ANGLES_OF_TFJS,
    LARGE_COMPLEX_LOGARITHMS,
    LARGE_LOGARITHMS,
    ONNX,
    ROOTS,
    RUNTIME,
    has_domain,
    huge_numbers,
)
from limitations.limitation import Limitation, Looser

_EXPONENTIALS = huge_numbers(
    "loses digits of large exponentials, and gives infinity for the largest ones",
    ("float32",),
    looser=Looser.MODERATE_RESULTS,
)

LIMITATIONS = {
    "sqrt": [ROOTS],
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
    **dict.fromkeys(("exp", "exp2", "cosh"), (LARGE_COMPLEX_ANGLES, _EXPONENTIALS)),
    "tanh": [LARGE_COMPLEX_ANGLES, LARGE_COMPLEX_ANGLES_OF_TFJS],
    "sinh": [LARGE_COMPLEX_ANGLES, LARGE_COMPLEX_ANGLES_OF_TFJS, _EXPONENTIALS],
    "expm1": [
        LARGE_COMPLEX_ANGLES,
        LARGE_COMPLEX_ANGLES_OF_TFJS,
        dataclasses.replace(_EXPONENTIALS, where=lambda case, params: case.startswith("domain_")),
    ],
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
        Limitation(
            "onnxruntime's logistic function is off by 6e-8, and so gives zero for small ones.",
            looser=Looser.MODERATE,
            dtypes=("float32",),
            modes=RUNTIME,
            targets=ONNX,
            where=has_domain,
        ),
    ],
}
