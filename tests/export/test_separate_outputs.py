"""Outputs of TF Lite models that are inputs, or that are the same as others."""

import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from lowering import export

ARGS = np.float32([1, -2, np.inf]), np.int32([3, 4]), np.array([True, False])


def _tensors(model):
    """The tensors that are the inputs and the outputs of each subgraph that has a signature."""
    root = schema.Model.GetRootAsModel(model)
    for k in range(root.SignatureDefsLength()):
        graph = root.Subgraphs(root.SignatureDefs(k).SubgraphIndex())
        yield graph.InputsAsNumpy().tolist(), graph.OutputsAsNumpy().tolist()


@pytest.mark.parametrize(
    "fun",
    [
        lambda x, i, b: {"x": x, "i": i, "b": b, "y": x + i[0]},
        lambda x, i, b: {"first": x, "second": x, "third": x.T, "rest": i[b.astype(int)]},
        lambda x, i, b: [x + i[0], i[0] + x, x + i[0], ~b],
    ],
)
def test_outputs_are_tensors_of_their_own(fun):
    inputs, outputs = next(_tensors(export.to_tflite(fun, ARGS)))
    assert len({*inputs, *outputs}) == len(inputs) + len(outputs)


def test_of_several_signatures():
    functions = {"same": lambda x: x, "other": jnp.negative}
    model = export.to_tflite(functions, {"same": ARGS[:1], "other": ARGS[:1]})
    for (x,), (y,) in _tensors(model):
        assert x != y
