"""Limitations of dot_general."""

from limitations.consumers import ALL, RUNTIME
from limitations.limitation import Limitation

LIMITATIONS = {
    "dot_general": [
        Limitation(
            "TensorFlow's optimizer of graphs cannot import values of float8.",
            error="Converting f8E",
            modes=RUNTIME,
            targets=ALL,
            where=lambda case, params: case.startswith("float8_"),
        )
    ]
}
