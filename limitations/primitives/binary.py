"""Limitations of arithmetic primitives of two operands."""

from limitations.consumers import ONNX, RUNTIME, TFJS, TFLITE, is_domain
from limitations.limitation import Limitation, Looser

_ROUNDING_LEFT_OUT = Limitation(
    "Without 64-bit types, XLA leaves out the rounding of results to float8_e8m0fnu, which has no "
    "infinity, where the runtimes round.",
    looser=Looser.NAN_REACHES,
    dtypes=("float8_e8m0fnu",),
    modes=RUNTIME,
    targets=(*TFLITE, *TFJS),
)

LIMITATIONS = {
    **dict.fromkeys(("add", "div"), (_ROUNDING_LEFT_OUT,)),
    "pow": [
        Limitation(
            "TF.js's cpu backend casts int32 to float32 without rounding, so that a large exponent "
            "stays odd.",
            looser=Looser.MODERATE,
            dtypes=("float32",),
            modes=RUNTIME,
            targets=TFJS,
            where=lambda case, params: case.endswith("_int32"),
        ),
    ],
    "integer_pow": [
        Limitation(
            "A power that underflows is zero, whose sign is left open, or a subnormal number where "
            "XLA has zero; its inverse is infinity of either sign, or finite.",
            looser=Looser.NEAR_ONE,
            dtypes=("float32", "bfloat16"),
            modes=RUNTIME,
            targets=(*ONNX, *TFJS),
            where=is_domain,
        ),
        Limitation(
            "A power that underflows is a subnormal number where XLA has zero, and its inverse is "
            "finite.",
            looser=Looser.NEAR_ONE,
            dtypes=("float64",),
            modes=RUNTIME,
            targets=ONNX,
            where=is_domain,
        ),
        Limitation(
            "A power just below the least normal number, to which bfloat16 rounds it, is zero with "
            "the precision of float32, and its inverse is infinity.",
            looser=Looser.NEAR_ONE,
            dtypes=("bfloat16",),
            modes=RUNTIME,
            targets=TFLITE,
            where=is_domain,
        ),
    ],
}
