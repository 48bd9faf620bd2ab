"""A graph network as of Battaglia et al., written with jraph, on a batch of padded graphs."""

from collections.abc import Callable
from typing import SupportsIndex

import jax
import jraph
import numpy as np
from flax import linen as nn

from harnesses.models.registry import Model


class Update(nn.Module):
    """Updates edges, nodes or globals: a dense layer on the concatenation of jraph's arguments."""

    features: int

    @nn.compact
    def __call__(self, *collected: jax.Array) -> jax.Array:
        x = jax.numpy.concatenate(collected, axis=-1)
        return nn.LayerNorm()(nn.relu(nn.Dense(self.features)(x)))


class GraphNetwork(nn.Module):
    """Rounds of message passing; nodes weigh their incoming edges by attention."""

    features: int
    rounds: int

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        for _ in range(self.rounds):
            edge, node, global_ = (Update(self.features) for _ in range(3))
            score = nn.Dense(1)

            network = jraph.GraphNetwork(
                update_edge_fn=edge,
                update_node_fn=node,
                update_global_fn=global_,
                attention_logit_fn=lambda edges, *_, score=score: score(edges),
                attention_reduce_fn=lambda edges, weights: edges * weights,
            )
            graph = network(graph)
        return graph


def graph_model(
    name: str, network: nn.Module, features: int, nodes: int, edges: int, batch: int
) -> Model:
    """A model of a network that maps graphs to graphs.

    Args:
      name: the name of the model.
      network: a module that takes and returns a `jraph.GraphsTuple`.
      features: the number of features of each node, each edge and each graph.
      nodes: the largest number of nodes of a graph.
      edges: the largest number of edges of a graph.
      batch: the usual number of graphs.
    """

    def variables(key: jax.Array, inputs: dict) -> dict:
        return network.init(key, jraph.GraphsTuple(**inputs))

    def apply(params: dict, inputs: dict) -> dict:
        graph = network.apply(params, jraph.GraphsTuple(**inputs))
        return {"nodes": graph.nodes, "edges": graph.edges, "globals": graph.globals}

    return Model(name, variables, apply, _draw_graphs(features, nodes, edges), {"batch": batch})


def _draw_graphs(features: int, most_nodes: int, most_edges: int) -> Callable[..., dict]:
    """Draws the fields of a `jraph.GraphsTuple`: `batch` random graphs and a padding graph.

    The features of nodes, edges and globals are float32 [count, features], the rest int32 [count].
    """

    def draw(rng: np.random.Generator, batch: int) -> dict[str, np.ndarray]:
        def normal(count: SupportsIndex) -> np.ndarray:
            return rng.normal(size=(count, features)).astype(np.float32)

        def graph() -> jraph.GraphsTuple:
            nodes, edges = rng.integers(2, most_nodes), rng.integers(1, most_edges)
            return jraph.GraphsTuple(
                nodes=normal(nodes),
                edges=normal(edges),
                globals=normal(1),
                senders=rng.integers(0, nodes, size=edges, dtype=np.int32),
                receivers=rng.integers(0, nodes, size=edges, dtype=np.int32),
                n_node=np.array([nodes], np.int32),
                n_edge=np.array([edges], np.int32),
            )

        graphs = jraph.batch_np([graph() for _ in range(batch)])
        padded = jraph.pad_with_graphs(
            graphs, batch * most_nodes + 1, batch * most_edges, batch + 1
        )
        # jraph makes indices of 64 bits.
        return {
            name: x.astype(np.float32 if x.dtype == np.float32 else np.int32)
            for name, x in padded._asdict().items()
        }

    return draw


MODELS = {
    "small": graph_model("graph_network", GraphNetwork(5, 2), 4, nodes=5, edges=8, batch=2),
    "realistic": graph_model(
        "graph_network", GraphNetwork(64, 3), 64, nodes=40, edges=120, batch=8
    ),
}
