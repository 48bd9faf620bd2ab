"""Limitations of special functions."""

import dataclasses

from limitations.consumers import FLUSHED, FLUSHED_BY_LITERT, FLUSHED_DOUBLES, doubles

_ERROR_FUNCTIONS = doubles(
    "onnxruntime has no error function of float64; one with the digits of float32 takes its place."
)
_BESSEL_FUNCTIONS = doubles(
    "ONNX has no Bessel functions; what takes their place has the digits of float32."
)

LIMITATIONS = {
    **dict.fromkeys(("igamma", "igammac", "igamma_grad_a"), (FLUSHED, FLUSHED_DOUBLES)),
    "zeta": (FLUSHED_BY_LITERT, FLUSHED_DOUBLES),
    "polygamma": (
        dataclasses.replace(FLUSHED_BY_LITERT, dtypes=("float32",)),
        FLUSHED_DOUBLES,
    ),
    **dict.fromkeys(("erf", "erfc"), (_ERROR_FUNCTIONS,)),
    **dict.fromkeys(("bessel_i0e", "bessel_i1e"), (_BESSEL_FUNCTIONS,)),
}
