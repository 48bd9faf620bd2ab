"""Runs models of TF Lite in LiteRT's interpreter."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lowering.errors import UnsupportedError
from lowering.export.entry import Entry
from lowering.export.packages import import_package
from lowering.export.verification import refusals


def check_runs(model: bytes) -> None:
    """Raises an UnsupportedError if a model has ops that LiteRT's interpreter does not run."""
    schema = import_package("ai_edge_litert.schema_py_generated", "tflite")
    root = schema.Model.GetRootAsModel(model)
    names = [root.OperatorCodes(i).CustomCode() for i in range(root.OperatorCodesLength())]
    flex = sorted(name.decode() for name in names if name and name.startswith(b"Flex"))
    if flex:
        raise UnsupportedError(
            f"the TF Lite model has {', '.join(flex)}, which only TensorFlow's kernels run; "
            "LiteRT's interpreter lacks these. With verify=False the model is not run"
        )


def run(model: bytes, name: str, entry: Entry) -> dict[str, np.ndarray]:
    """The results of a signature of a model in LiteRT's interpreter, for its entry's samples.

    Samples are quantized for inputs that are quantized, and quantized outputs become floats.
    """
    named = zip(entry.specs, entry.samples, strict=True)
    with refusals("LiteRT", "run the model"):
        signature = runner(model, name)
        of_inputs, of_outputs = signature.get_input_details(), signature.get_output_details()
        given = {spec.name: _quantized(x, of_inputs[spec.name]) for spec, x in named}
        results = signature(**given)
        return {name: _restored(results[name], of_outputs[name]) for name in entry.outputs}


def runner(model: bytes, name: str) -> Any:
    """A function of the inputs of a signature of a model by name, in LiteRT's interpreter."""
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    return litert.Interpreter(model_content=model).get_signature_runner(name)


def _quantized(x: np.ndarray, details: Mapping[str, Any]) -> np.ndarray:
    """An input as an interpreter takes it."""
    scale, zero = details["quantization"]
    if not scale or x.dtype == details["dtype"]:
        return x
    limits = np.iinfo(details["dtype"])
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(details["dtype"])


def _restored(x: np.ndarray, details: Mapping[str, Any]) -> np.ndarray:
    """An output of an interpreter as a float, if it is quantized."""
    scale, zero = details["quantization"]
    return np.float32(scale) * (x.astype(np.float32) - zero) if scale else x
