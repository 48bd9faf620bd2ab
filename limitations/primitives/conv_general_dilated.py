"""Limitations of convolutions."""

from limitations.consumers import RUNTIME, TFLITE
from limitations.limitation import Limitation, Looser

LIMITATIONS = {
    "conv_general_dilated": [
        Limitation(
            "LiteRT's kernel of convolutions gives the largest finite numbers for infinities.",
            looser=Looser.FINITE_FOR_INFINITE,
            dtypes=("float32",),
            modes=RUNTIME,
            targets=TFLITE,
            where=lambda case, params: case.startswith("nonfinite"),
        )
    ]
}
