"""A graph network as of Battaglia et al., written with jraph, on a batch of padded graphs."""

from typing import SupportsIndex

import jax
import jraph
import numpy as np
from flax import linen as nn

from harnesses.models.parameters import random_parameters
from harnesses.models.registry import Model

_FEATURES = 16
_NODES, _EDGES = 6, 12


class Update(nn.Module):
    """Updates edges, nodes or globals: a dense layer on the concatenation of jraph's arguments."""

    features: int = _FEATURES

    @nn.compact
    def __call__(self, *collected: jax.Array) -> jax.Array:
        x = jax.numpy.concatenate(collected, axis=-1)
        return nn.LayerNorm()(nn.relu(nn.Dense(self.features)(x)))


class GraphNetwork(nn.Module):
    """Two rounds of message passing; nodes weigh their incoming edges by attention."""

    rounds: int = 2

    @nn.compact
    def __call__(self, graph: jraph.GraphsTuple) -> jraph.GraphsTuple:
        for _ in range(self.rounds):
            edge, node, global_, score = Update(), Update(), Update(), nn.Dense(1)

            network = jraph.GraphNetwork(
                update_edge_fn=edge,
                update_node_fn=node,
                update_global_fn=global_,
                attention_logit_fn=lambda edges, *_, score=score: score(edges),
                attention_reduce_fn=lambda edges, weights: edges * weights,
            )
            graph = network(graph)
        return graph


_network = GraphNetwork()


def _apply(params: dict, inputs: dict) -> dict:
    graph = _network.apply(params, jraph.GraphsTuple(**inputs))
    return {"nodes": graph.nodes, "edges": graph.edges, "globals": graph.globals}


def init(seed: int) -> dict:
    """Returns the variables."""
    graph = jraph.GraphsTuple(**make_inputs(0, 1))
    return random_parameters(_network.init, graph, seed=seed)


def make_inputs(seed: int, batch: int) -> dict[str, np.ndarray]:
    """Returns the fields of a `jraph.GraphsTuple`: `batch` random graphs and a padding graph.

    The features of nodes, edges and globals are float32 [count, 16], the rest int32 [count].
    """
    rng = np.random.default_rng(seed)

    def features(count: SupportsIndex) -> np.ndarray:
        return rng.normal(size=(count, _FEATURES)).astype(np.float32)

    def graph() -> jraph.GraphsTuple:
        nodes, edges = rng.integers(2, _NODES), rng.integers(1, _EDGES)
        return jraph.GraphsTuple(
            nodes=features(nodes),
            edges=features(edges),
            globals=features(1),
            senders=rng.integers(0, nodes, size=edges, dtype=np.int32),
            receivers=rng.integers(0, nodes, size=edges, dtype=np.int32),
            n_node=np.array([nodes], np.int32),
            n_edge=np.array([edges], np.int32),
        )

    graphs = jraph.batch_np([graph() for _ in range(batch)])
    padded = jraph.pad_with_graphs(graphs, batch * _NODES + 1, batch * _EDGES, batch + 1)
    return {name: np.asarray(value) for name, value in padded._asdict().items()}


MODEL = Model("graph_network", init, _apply, make_inputs)
