"""Limitations of sort."""

from limitations.consumers import RUNTIME, TFLITE
from limitations.limitation import Limitation

LIMITATIONS = {
    "sort": [
        Limitation(
            "TF Lite's converter moves a Gather before the cast of its operand, and has none of "
            "uint16.",
            error="lowering error: .*tfl.gather.*ui16",
            modes=RUNTIME,
            targets=TFLITE,
            where=lambda case, params: case.startswith("three_keys_"),
        )
    ]
}
