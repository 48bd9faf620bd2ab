"""Limitations of TensorFlow functions that JAX calls."""

from limitations.limitation import Limitation

LIMITATIONS = {
    "call_tf": (
        Limitation(
            "XLA has no strings, so that it cannot compile a function that makes some. (JAX runs "
            "such a function by a callback.)",
            error="TF error: .*unsupported operations",
            modes=("compiled",),
            variants=None,
            where=lambda case, params: case == "strings",
        ),
    )
}
