"""Jraph: networks on graphs, which gather and scatter along edges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

jraph = pytest.importorskip("jraph")


def make_graphs():
    """Two graphs, padded to a common size."""
    rng = np.random.default_rng(0)

    def graph(num_nodes, num_edges):
        return jraph.GraphsTuple(
            nodes=rng.normal(size=(num_nodes, 4)).astype(np.float32),
            edges=rng.normal(size=(num_edges, 2)).astype(np.float32),
            senders=rng.integers(0, num_nodes, num_edges).astype(np.int32),
            receivers=rng.integers(0, num_nodes, num_edges).astype(np.int32),
            n_node=np.array([num_nodes], np.int32),
            n_edge=np.array([num_edges], np.int32),
            globals=np.zeros((1, 3), np.float32),
        )

    return jraph.pad_with_graphs(jraph.batch_np([graph(4, 6), graph(3, 5)]), 10, 16, 3)


def matrices(**shapes):
    rng = np.random.default_rng(1)
    return {name: rng.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def test_a_graph_network():
    params = matrices(edge=(2 + 4 + 4 + 3, 5), node=(4 + 5 + 5 + 3, 6), all=(6 + 5 + 3, 2))

    def apply(params, graphs):
        def dense(name):
            return jraph.concatenated_args(lambda x: jax.nn.relu(x @ params[name]))

        network = jraph.GraphNetwork(dense("edge"), dense("node"), dense("all"))
        out = network(graphs)
        return out.globals, out.nodes * jraph.get_node_padding_mask(out)[:, None]

    check(apply, params, make_graphs())


def test_attention_along_edges():
    params = matrices(query=(4, 6), logit=(12, 1))

    def apply(params, graphs):
        network = jraph.GAT(
            attention_query_fn=lambda nodes: nodes @ params["query"],
            attention_logit_fn=lambda sent, received, edges: jax.nn.leaky_relu(
                jnp.concatenate([sent, received], 1) @ params["logit"]
            ),
        )
        return network(graphs._replace(edges=None)).nodes

    check(apply, params, make_graphs())
