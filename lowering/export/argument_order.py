"""The order of inputs and outputs in TF Lite models.

TensorFlow sorts them by name when it saves a function, and the converter keeps that. Here they get
the order of the function again, so that a position means the same in every format.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from lowering.export import signatures

# The fields of a signature in the flatbuffer of a model: its inputs and its outputs.
_INPUTS, _OUTPUTS = 4, 6


def in_order(model: bytes, functions: Mapping[str, Any]) -> bytes:
    """A TF Lite model whose signatures have the order of the functions they are made of.

    Args:
      model: the model.
      functions: the concrete functions by the names of the signatures.
    """
    changed = bytearray(model)
    root = schema.Model.GetRootAsModel(changed, 0)
    is_changed = False
    for signature in map(root.SignatureDefs, range(root.SignatureDefsLength())):
        concrete = functions[signature.SignatureKey().decode()]
        graph = root.Subgraphs(signature.SubgraphIndex())
        names = signatures.output_names(concrete)
        outputs = list(signatures.named(concrete, names))
        inputs = [x.op.name for x in signatures.inputs(concrete)]
        is_changed |= _sort(signature, _INPUTS, inputs, graph.InputsAsNumpy())
        is_changed |= _sort(signature, _OUTPUTS, outputs, graph.OutputsAsNumpy())
    return bytes(changed) if is_changed else model


def _sort(signature: Any, field: int, order: Sequence[str], of_graph: Any) -> bool:
    """Sorts the inputs or outputs of a signature and of its graph; returns whether it could.

    A flatbuffer's vector of tables stores the distance from each element to its table, so a table
    that moves needs another distance.
    """
    length, item = {
        _INPUTS: (signature.InputsLength(), signature.Inputs),
        _OUTPUTS: (signature.OutputsLength(), signature.Outputs),
    }[field]
    maps = list(map(item, range(length)))
    places = {name: i for i, name in enumerate(order)}
    if not maps or any(x.Name().decode() not in places for x in maps):
        return False
    in_place = sorted(maps, key=lambda x: places[x.Name().decode()])
    tensors = [x.TensorIndex() for x in in_place]
    if sorted(tensors) != sorted(of_graph):
        return False
    table = signature._tab
    start = table.Vector(table.Offset(field))
    distances = np.frombuffer(table.Bytes, np.uint32, length, start)
    distances[:] = [x._tab.Pos - start - 4 * i for i, x in enumerate(in_place)]
    of_graph[:] = tensors
    return True
