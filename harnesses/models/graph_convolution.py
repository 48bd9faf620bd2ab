"""A graph network with convolutions as of Kipf and Welling, written with jraph.

A convolution updates each node by a dense layer and sums over its neighbours and itself, scaled by
the degrees of both. Edges have no features of their own.
"""

import jax
import jraph
from flax import linen as nn

from harnesses.models.graph_network import graph_model


class GraphConvolutions(nn.Module):
    """Convolutions, and a dense layer from the sum of the nodes of each graph to its globals."""

    features: tuple[int, ...]
    classes: int

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        for features in self.features:
            dense = nn.Dense(features)

            def update(nodes: jax.Array, dense: nn.Dense = dense) -> jax.Array:
                return nn.relu(dense(nodes))

            convolution = jraph.GraphConvolution(
                update, symmetric_normalization=True, add_self_edges=True
            )
            graph = convolution(graph)
        classify = nn.Dense(self.classes)
        readout = jraph.GraphNetwork(
            update_edge_fn=None,
            update_node_fn=None,
            update_global_fn=lambda nodes, edges, globals_: classify(nodes),
        )
        return readout(graph)


MODELS = {
    "small": graph_model(
        "graph_convolution", GraphConvolutions((5, 6), 3), 4, nodes=5, edges=8, batch=2
    ),
    "realistic": graph_model(
        "graph_convolution", GraphConvolutions((64, 64, 64), 10), 64, nodes=40, edges=120, batch=8
    ),
}
