"""Limitations of TensorFlow functions that JAX calls."""

from limitations.consumers import ALL, ONNX, RUNTIME, TFJS, TFLITE
from limitations.limitation import Limitation

_KEPT = "The ops of a TensorFlow function are kept as they are, and "
_LACKS = "lowering error: .*it needs .* lacks"
_COMPLEX = ("complex64", "complex128")
_ON_CONSUMERS = ("graph", *RUNTIME)


def _computes(case, params):
    return case.startswith("computed_")


def _moves(case, params):
    return case.startswith("moved_")


def _has_strings(case, params):
    return case == "strings"


LIMITATIONS = {
    "call_tf": (
        Limitation(
            "XLA has no strings, so that it cannot compile a function that makes some. (JAX runs "
            "such a function by a callback.)",
            error="TF error: .*unsupported operations",
            modes=("compiled",),
            variants=None,
            where=_has_strings,
        ),
        Limitation(
            f"{_KEPT}these runtimes have no strings.",
            error="lowering error: .*(AsString|StringLength)",
            modes=RUNTIME,
            targets=ALL,
            where=_has_strings,
        ),
        Limitation(
            f"{_KEPT}these runtimes have none of bfloat16.",
            error=_LACKS,
            dtypes=("bfloat16",),
            modes=_ON_CONSUMERS,
            targets=ALL,
        ),
        Limitation(
            f"{_KEPT}TF Lite lacks these for short and unsigned numbers.",
            error=_LACKS,
            dtypes=("float16", "int16", "uint16", "uint32", "uint64"),
            modes=_ON_CONSUMERS,
            targets=TFLITE,
        ),
        Limitation(
            f"{_KEPT}TF Lite and ONNX runtimes have no complex numbers.",
            error=_LACKS,
            dtypes=_COMPLEX,
            modes=_ON_CONSUMERS,
            targets=(*TFLITE, *ONNX),
        ),
        Limitation(
            f"{_KEPT}TF.js cannot slice arrays of complex numbers.",
            error=_LACKS,
            dtypes=_COMPLEX,
            modes=_ON_CONSUMERS,
            targets=TFJS,
            where=_moves,
        ),
        Limitation(
            f"{_KEPT}TF.js has no sine of complex numbers.",
            error="lowering error: .*TF.js failed to run the model: .*'sin' must be float32",
            dtypes=_COMPLEX,
            modes=RUNTIME,
            targets=TFJS,
            where=_computes,
        ),
    )
}
