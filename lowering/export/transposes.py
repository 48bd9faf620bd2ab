"""Keeps TensorFlow's converter from moving transposes in programs with loops.

See `tflite.quirks.transposes_around_loops`.
"""

import pathlib
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2

from lowering.export.frozen import replace_references

# What `tf.while_loop` becomes.
_LOOPS = ("While", "StatelessWhile")


def keep_transposes(folder: pathlib.Path) -> None:
    """Lets the converter move no transpose of a SavedModel that has a loop.

    Each stands between two ops that the converter moves nothing past, and removes later.
    """
    path = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    functions = [f for graph in model.meta_graphs for f in graph.graph_def.library.function]
    if not any(node.op in _LOOPS for function in functions for node in function.node_def):
        return
    for function in functions:
        _keep(function)
    path.write_bytes(model.SerializeToString())


def _keep(function: Any) -> None:
    """Puts `StopGradient` before and after the transposes of a function."""
    transposes = [node for node in function.node_def if node.op == "Transpose"]
    kept = {f"{node.name}:y:0": f"{node.name}/kept:output:0" for node in transposes}
    replace_references(function, lambda reference: kept.get(reference, reference))
    for node in transposes:
        _add_barrier(function, node, f"{node.name}/operand", node.input[0])
        node.input[0] = f"{node.name}/operand:output:0"
        _add_barrier(function, node, f"{node.name}/kept", f"{node.name}:y:0")


def _add_barrier(function: Any, transpose: Any, name: str, reference: str) -> None:
    node = function.node_def.add(op="StopGradient", name=name, input=[reference])
    node.attr["T"].CopyFrom(transpose.attr["T"])
