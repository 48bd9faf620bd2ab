"""The order of inputs and outputs in TF Lite models.

TensorFlow sorts them by name when it saves a function, and the converter keeps that. Here they get
the order of the function again, so that a position means the same in every format.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lowering.export import signatures


def set_order(root: Any, functions: Mapping[str, Any]) -> None:
    """Orders the inputs and outputs of a TF Lite model's signatures as those of its functions.

    Args:
      root: the model, as an object.
      functions: the concrete functions by the names of the signatures.
    """
    for signature in root.signatureDefs or ():
        concrete = functions[signature.signatureKey.decode()]
        graph = root.subgraphs[signature.subgraphIndex]
        names = signatures.output_names(concrete)
        outputs = list(signatures.named(concrete, names))
        inputs = [x.op.name for x in signatures.inputs(concrete)]
        graph.inputs = _sort(signature.inputs, inputs, graph.inputs)
        graph.outputs = _sort(signature.outputs, outputs, graph.outputs)


def _sort(maps: Any, order: Sequence[str], of_graph: Any) -> Any:
    """Sorts the inputs or outputs of a signature; returns those of its graph in that order."""
    places = {name: i for i, name in enumerate(order)}
    if not maps or any(x.name.decode() not in places for x in maps):
        return of_graph
    in_place = sorted(maps, key=lambda x: places[x.name.decode()])
    tensors = [x.tensorIndex for x in in_place]
    if sorted(tensors) != sorted(of_graph):
        return of_graph
    maps[:] = in_place
    return tensors
