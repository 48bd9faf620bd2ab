"""Replaces functions in a graph by TF Lite ops that compute the same.

The functions are those of `lowering.ops.composites`. The names of gradients go, too: TensorFlow
warns of those that a file does not have, and a TF Lite model has none.
"""

import pathlib
from typing import Any

from tensorflow.core.protobuf import saved_model_pb2

from lowering.ops.composites import BLOCK_WRITE

# The attribute of an op that names its gradient.
_GRADIENT = "_gradient_op_type"
_CALLS = ("PartitionedCall", "StatefulPartitionedCall")


def replace_composites(folder: pathlib.Path) -> None:
    """Replaces calls in a SavedModel by ops that the converter has builtin ops for.

    Ops have their own gradients afterwards.
    """
    path = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    libraries = [graph.graph_def.library for graph in model.meta_graphs]
    changed = [_replace(library) for library in libraries]
    if any(changed):
        path.write_bytes(model.SerializeToString())


def _replace(library: Any) -> bool:
    """Replaces calls and takes out gradients; returns whether there were any."""
    writes = {
        function.signature.name
        for function in library.function
        if function.signature.name.startswith(f"__inference_{BLOCK_WRITE}_")
    }
    found = False
    for function in library.function:
        for node in function.node_def:
            found |= node.attr.pop(_GRADIENT, None) is not None
            if node.op in _CALLS and node.attr["f"].func.name in writes:
                _to_update_slice(node)
                found = True
    return found


def _to_update_slice(node: Any) -> None:
    """Makes a call the op that becomes `DYNAMIC_UPDATE_SLICE`; its result has the same name."""
    dtype, _, of_index = node.attr["Tin"].list.type
    node.op = "XlaDynamicUpdateSlice"
    node.attr.clear()
    node.attr["T"].type, node.attr["Tindices"].type = dtype, of_index
