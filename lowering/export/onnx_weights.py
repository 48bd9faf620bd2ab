"""Weights of ONNX models in 8 and 16 bits, with the ops that make 32 of them.

Runtimes run an op on a constant once, when the model is loaded.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from lowering.export.weights import in_fewer_bits


def store_weights(graph: Any, of_program: Iterable[np.dtype]) -> None:
    """Gives the weights of a graph the dtypes of the program, where these hold them.

    Args:
      graph: an `onnx.GraphProto`, which is changed.
      of_program: the dtypes, as `weights.dtypes_of` finds them.
    """
    if not of_program:
        return
    from onnx import AttributeProto, helper, numpy_helper

    widening = []
    for tensor in graph.initializer:
        numbers = numpy_helper.to_array(tensor)
        stored = in_fewer_bits(numbers, of_program, has_bfloat16=True)
        if stored is None:
            continue
        name, wide = tensor.name, tensor.data_type
        tensor.CopyFrom(_tensor(stored, f"{name}__stored"))
        widening.append(helper.make_node("Cast", [tensor.name], [name], name=name, to=wide))
    nodes = [*widening, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                store_weights(attribute.g, of_program)


def _tensor(x, name):
    from onnx import helper

    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    return helper.make_tensor(name, dtype, x.shape, x.tobytes(), raw=True)
