"""Limitations of LiteRT, ONNX Runtime and TF.js that several primitives share."""

import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any

from limitations.limitation import Limitation, Looser

RUNTIME = ("runtime",)
TFLITE, ONNX, TFJS = ("tflite",), ("onnx",), ("tfjs",)
ALL = (*TFLITE, *ONNX, *TFJS)

# float16 ends at 65504.
WITH_HUGE_NUMBERS = ("float32", "bfloat16", "complex64")


def has_domain(case: str, params: Mapping[str, Any] | None = None) -> bool:
    """Whether a case has numbers of all magnitudes, rather than arrays of some shape."""
    return "shape" not in case


def is_domain(case: str, params: Mapping[str, Any] | None = None) -> bool:
    """Whether a case has numbers from all of a function's domain."""
    return case.startswith("domain_")


def huge_numbers(
    what: str,
    dtypes: Collection[str] = WITH_HUGE_NUMBERS,
    where: Callable[[str, Mapping[str, Any]], bool] = has_domain,
    looser: Looser = Looser.MODERATE,
) -> Limitation:
    """What XNNPACK computes wrongly for numbers beyond 2^16, or for zero."""
    return Limitation(
        f"XNNPACK, by which LiteRT computes float32, {what}.",
        looser=looser,
        dtypes=dtypes,
        modes=RUNTIME,
        targets=TFLITE,
        where=where,
    )


COMPLEX = ("complex64",)
_LOGARITHMS = "gives infinity for the logarithms of the largest numbers"
_ANGLES = "loses the digits of angles beyond 2^21, and gives NaN for huge ones"
LOGARITHMS = huge_numbers(f"loses digits of logarithms next to zero, and {_LOGARITHMS}")
LARGE_ANGLES = huge_numbers(_ANGLES)


def _large_angles_of_tfjs(
    dtypes: Collection[str], more: str = "", looser: Looser = Looser.MODERATE
) -> Limitation:
    return Limitation(
        f"TF.js computes other sines and cosines of huge angles by WebAssembly{more}.",
        looser=looser,
        dtypes=dtypes,
        modes=RUNTIME,
        targets=TFJS,
        where=has_domain,
    )


LARGE_ANGLES_OF_TFJS = _large_angles_of_tfjs(("float32", "bfloat16", "complex64"))
# Of complex numbers these functions are made of logarithms and angles.
LARGE_COMPLEX_LOGARITHMS = huge_numbers(_LOGARITHMS, COMPLEX)
LARGE_COMPLEX_ANGLES = huge_numbers(_ANGLES, COMPLEX)
LARGE_COMPLEX_ANGLES_OF_TFJS = _large_angles_of_tfjs(
    COMPLEX,
    ", and loses digits next to poles",
    Looser.MODERATE_WITH_FEWER_DIGITS,
)
ROOTS = huge_numbers("takes roots above 2^126 by half as much too large", ("float32", "bfloat16"))
FLUSHED = Limitation(
    "XLA takes subnormal numbers for zeros in between, where the runtimes keep them: for arguments "
    "next to the least normal number JAX's result is that of zero. For large arguments TensorFlow "
    "computes in float64, which the runtimes lack.",
    looser=Looser.MODERATE_WITH_FEWER_DIGITS,
    dtypes=("float32", "bfloat16"),
    modes=RUNTIME,
    targets=ALL,
    where=lambda case, params: case.startswith("domain_") and "shapes" not in case,
)
FLUSHED_DOUBLES = dataclasses.replace(
    FLUSHED,
    reason="XLA takes subnormal numbers for zeros in between, where onnxruntime keeps them: for "
    "arguments next to the least normal number JAX's result is that of zero.",
    dtypes=("float64",),
    targets=ONNX,
)
# LiteRT flushes them, too.
FLUSHED_BY_LITERT = dataclasses.replace(FLUSHED, targets=(*ONNX, *TFJS))
NO_CALLBACKS = Limitation(
    "These runtimes have no Python to call back into.",
    error="lowering error: .*its runtime cannot call back",
    modes=("graph", *RUNTIME),
    targets=ALL,
)
