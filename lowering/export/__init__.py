"""Exports JAX functions to the formats of other runtimes.

    from lowering import export

    images = jax.ShapeDtypeStruct((1, 28, 28), "float32")
    export.to_tflite(predict, (images,), "model.tflite", params=params)
    predict_again = export.load("model.tflite")

Each export is a chain of stages: `entry` makes a TensorFlow function of flat, named tensors;
the module of the format converts it; `verification` runs the result in its real runtime and
compares it with JAX. As `lowering` itself, this package imports a module when a name of it is used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowering.export.entry import Entry
    from lowering.export.inspection import inspect
    from lowering.export.language_models import decode_any_length, prefill_decode
    from lowering.export.litertlm import to_litertlm
    from lowering.export.loading import LoadedModel, load
    from lowering.export.metadata import Metadata
    from lowering.export.onnx import to_onnx
    from lowering.export.reports import Model, Report
    from lowering.export.saved_model import to_saved_model
    from lowering.export.tfjs import to_tfjs
    from lowering.export.tflite import to_tflite
    from lowering.export.verification import VerificationError
    from lowering.export.weight_quantization import Weights

__all__ = [
    "Entry",
    "LoadedModel",
    "Metadata",
    "Model",
    "Report",
    "VerificationError",
    "Weights",
    "decode_any_length",
    "inspect",
    "load",
    "prefill_decode",
    "to_litertlm",
    "to_onnx",
    "to_saved_model",
    "to_tfjs",
    "to_tflite",
]

# The module that defines each public name.
_MODULES = {
    "Entry": "entry",
    "LoadedModel": "loading",
    "Metadata": "metadata",
    "Model": "reports",
    "Report": "reports",
    "VerificationError": "verification",
    "Weights": "weight_quantization",
    "decode_any_length": "language_models",
    "inspect": "inspection",
    "load": "loading",
    "prefill_decode": "language_models",
    "to_litertlm": "litertlm",
    "to_onnx": "onnx",
    "to_saved_model": "saved_model",
    "to_tfjs": "tfjs",
    "to_tflite": "tflite",
}
# Modules whose `write` is public.
_FORMATS = ("onnx", "saved_model", "tfjs", "tflite")


def __getattr__(name: str) -> Any:
    """A public name, or the module of a format."""
    if name in _FORMATS:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_FORMATS})
