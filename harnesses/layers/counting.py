"""How many nodes graphs have, as they are and in the files of runtimes."""

import collections
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.lite.python.convert_phase import ConverterError

import lowering
from harnesses.layers.layer import Layer
from lowering.errors import UnsupportedError
from lowering.export import onnx, readers, tfjs, tflite
from lowering.export.entries import entry
from lowering.targets import TARGETS

# The ops of which there is nothing to see.
_HIDDEN = {"Placeholder", "Const", "Identity", "NoOp"}
Counts = Mapping[str, int]


def counts(layer: Layer, target: str) -> tuple[Counts, Counts | None]:
    """The nodes of a layer's graph, and of the one by hand, by the type of the op.

    On `portable` they are those of TensorFlow's graph. For TF Lite, ONNX and TF.js they are those
    of a file; the graph by hand is written by TensorFlow's converter, or by our writer where
    TensorFlow has none. It has no nodes, None, if that lacks an op that is used by hand.
    """
    if target == "portable":
        return _of_graph(ours(layer)), _of_graph(by_hand(layer))
    shapes = _shapes(layer)
    made = entry(layer.fun, layer.args, TARGETS[target], polymorphic_shapes=shapes).concrete
    found = _of_file(made, target, is_ours=True)
    try:
        return found, _of_file(by_hand(layer), target, is_ours=False)
    except (UnsupportedError, ConverterError):
        return found, None


def ours(layer: Layer, target: str = "portable") -> Any:
    """The graph of a layer, a concrete function."""
    converted = lowering.convert(
        layer.fun, target=target, with_gradient=False, polymorphic_shapes=_shapes(layer)
    )
    return _concrete(converted, layer)


def by_hand(layer: Layer) -> Any:
    """The graph of a layer as people write it, a concrete function."""
    return _concrete(layer.by_hand, layer)


def _shapes(layer: Layer) -> Any:
    return ["b, ..."] * len(layer.args) if layer.symbolic else None


def _concrete(fun: Any, layer: Layer) -> Any:
    def flat(*args: Any) -> dict[str, Any]:
        leaves = jax.tree.leaves(fun(*args))
        return {f"y{i}": tf.identity(leaf) for i, leaf in enumerate(leaves)}

    specs = [
        tf.TensorSpec([None, *x.shape[1:]] if layer.symbolic else x.shape, x.dtype, f"x{i}")
        for i, x in enumerate(map(np.asarray, layer.args))
    ]
    return tf.function(flat, autograph=False).get_concrete_function(*specs)


def _of_graph(concrete: Any) -> Counts:
    """Counts the ops that compute the results, without those that check sizes."""
    found: dict[str, str] = {}
    pending = [x.op for x in concrete.outputs]
    while pending:
        op = pending.pop()
        if op.name not in found:
            found[op.name] = op.type
            pending += [x.op for x in op.inputs]
    return collections.Counter(kind for kind in found.values() if kind not in _HIDDEN)


def _of_file(concrete: Any, target: str, is_ours: bool) -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model")
        if target == "onnx":
            onnx.write(concrete, path)
            found = readers.of_onnx(path.read_bytes()).ops
        elif target == "tfjs":
            tfjs.write(concrete, path)
            found = readers.of_tfjs(path).ops
        elif is_ours:
            tflite.write(concrete, path)
            found = readers.of_tflite(path.read_bytes()).ops
        else:
            converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module())
            found = readers.of_tflite(converter.convert()).ops
    return {op: n for op, n in found.items() if op not in _HIDDEN}
