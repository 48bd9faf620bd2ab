"""Limitations of elementwise primitives of one operand."""

import dataclasses

from limitations.consumers import (
    LARGE_ANGLES,
    LARGE_ANGLES_OF_TFJS,
    LARGE_COMPLEX_ANGLES,
    LARGE_COMPLEX_ANGLES_OF_TFJS,
    LARGE_COMPLEX_LOGARITHMS,
    LOGARITHMS,
    ONNX,
    ROOTS,
    RUNTIME,
    has_domain,
    huge_numbers,
    is_domain,
)
from limitations.limitation import Limitation, Looser

_EXPONENTIALS = huge_numbers(
    "loses digits of large exponentials, and gives infinity for the largest ones",
    ("float32",),
    looser=Looser.MODERATE_RESULTS,
)
_LARGEST_OF_BFLOAT16 = dataclasses.replace(_EXPONENTIALS, dtypes=("bfloat16",), where=is_domain)

LIMITATIONS = {
    "sqrt": [
        ROOTS,
        huge_numbers("takes roots that are not the nearest numbers", ("float16",), is_domain),
    ],
    "rsqrt": [
        huge_numbers(
            "takes roots above 2^126 by half as much too large",
            ("bfloat16", "float32", "complex64"),
        )
    ],
    "log": [LOGARITHMS],
    **dict.fromkeys(("sin", "cos"), (LARGE_ANGLES, LARGE_ANGLES_OF_TFJS)),
    "tan": [
        huge_numbers(
            "loses the digits of large angles, and the more of tangents near their poles",
            looser=Looser.MODERATE_WITH_FEWER_DIGITS,
        ),
        LARGE_COMPLEX_ANGLES_OF_TFJS,
    ],
    **dict.fromkeys(
        ("asin", "acos", "asinh", "acosh", "log1p", "log2"), (LARGE_COMPLEX_LOGARITHMS,)
    ),
    "exp": [
        LARGE_COMPLEX_ANGLES,
        LARGE_COMPLEX_ANGLES_OF_TFJS,
        _EXPONENTIALS,
        _LARGEST_OF_BFLOAT16,
    ],
    "exp2": [LARGE_COMPLEX_ANGLES, LARGE_COMPLEX_ANGLES_OF_TFJS],
    **dict.fromkeys(
        ("cosh", "expm1", "sinh", "tanh"), (LARGE_COMPLEX_ANGLES, LARGE_COMPLEX_ANGLES_OF_TFJS)
    ),
    "logistic": [
        dataclasses.replace(
            huge_numbers(
                "gives NaN for the logistic function beyond 2^90 on processors with AVX-512",
                ("float32", "bfloat16"),
                is_domain,
            ),
            avx512=True,
        ),
        huge_numbers(
            "loses the digits of angles, and with them those of the logistic function at its poles",
            ("complex64",),
            is_domain,
            looser=Looser.NEAR_ONE,
        ),
        dataclasses.replace(
            LARGE_COMPLEX_ANGLES_OF_TFJS,
            reason="Sines and cosines for TF.js are rounded otherwise, and next to poles one and "
            "an exponential cancel all digits but those that rounding makes.",
            looser=Looser.NEAR_ONE,
            modes=("graph", *RUNTIME),
            where=is_domain,
        ),
        LARGE_COMPLEX_ANGLES,
        LARGE_COMPLEX_ANGLES_OF_TFJS,
        Limitation(
            "onnxruntime rounds exponentials of float64 otherwise than XLA, and next to poles one "
            "and an exponential cancel digits.",
            looser=Looser.NEAR_ONE,
            dtypes=("complex128",),
            modes=RUNTIME,
            targets=ONNX,
            where=is_domain,
        ),
        Limitation(
            "onnxruntime's logistic function is off by 6e-8, and so gives zero for small ones.",
            looser=Looser.MODERATE,
            dtypes=("float32", "bfloat16"),
            modes=RUNTIME,
            targets=ONNX,
            where=has_domain,
        ),
    ],
}
