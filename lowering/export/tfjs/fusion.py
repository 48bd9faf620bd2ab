"""Products and convolutions of TF.js that add a bias and apply an activation function themselves.

TensorFlow's optimizer joins such ops, too, but makes others that TF.js lacks, and does so only for
devices that it knows.
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from lowering.export.frozen import node_name
from lowering.export.tfjs.large import Large

# The ops that TF.js has with a bias, and their names with it.
_FUSED = {
    "MatMul": "_FusedMatMul",
    "Conv2D": "_FusedConv2D",
    "DepthwiseConv2dNative": "FusedDepthwiseConv2dNative",
}
_ADDITIONS = ("AddV2", "Add", "BiasAdd")
_ACTIVATIONS = {
    "MatMul": ("Relu", "Relu6", "Elu", "Sigmoid", "LeakyRelu"),
    "Conv2D": ("Relu", "Relu6", "Elu", "Sigmoid", "LeakyRelu"),
    # `quirks.slope_of_depthwise_convolutions`.
    "DepthwiseConv2dNative": ("Relu", "Relu6", "Elu", "Sigmoid"),
}


def fuse(nodes: Any, results: Iterable[str], weights: dict[str, Large] | None = None) -> None:
    """Joins products of constant weights with the ops after them; removes what is then not used.

    Factors of the features are multiplied into the weights.

    Args:
      nodes: the nodes of a graph or of a function, as a field of protobuf.
      results: references to what is read from outside.
      weights: the weights that are outside of the nodes, by the names of constants; those that are
        made of them are added.
    """
    graph = _Graph(nodes, results, {} if weights is None else weights)
    for product in [node for node in nodes if _can_fuse(node)]:
        graph.fuse(product)
    graph.remove_dropped()


def _can_fuse(node: Any) -> bool:
    if node.op not in _FUSED or _attr(node, "T").type != tf.float32.as_datatype_enum:
        return False
    return _attr(node, "data_format").s in (b"", b"NHWC") and not _attr(node, "transpose_a").b


class _Graph:
    """Nodes by name, and which nodes read them."""

    def __init__(self, nodes: Any, results: Iterable[str], weights: dict[str, Large]):
        self._nodes = nodes
        self._large = weights
        self._by_name = {node.name: node for node in nodes}
        self._readers: dict[str, list[Any]] = collections.defaultdict(list)
        for node in nodes:
            for reference in node.input:
                self._readers[node_name(reference)].append(node)
        self._results = {node_name(reference) for reference in results}
        self._dropped: set[str] = set()

    def fuse(self, product: Any) -> None:
        """Fuses a product with the factor, bias and activation that follow it."""
        weights = self._weights(product)
        if weights is None:
            return
        features = _features(product, weights)
        product = self._with_factor(product, weights, features)
        added = self._operand(product, _ADDITIONS, features)
        if added is None:
            return
        bias, addition = added
        activation = self._only_reader(addition)
        if activation is None or activation.op not in _ACTIVATIONS[product.op]:
            self._join(product, addition, bias, addition, [b"BiasAdd"])
        else:
            kinds = [b"BiasAdd", activation.op.encode()]
            self._join(product, addition, bias, activation, kinds)

    def remove_dropped(self) -> None:
        """Removes nodes that have been fused into others, and constants that are no longer read."""
        read = {node_name(r) for node in self._kept() for r in node.input} | self._results
        kept = [node for node in self._kept() if node.op != "Const" or node.name in read]
        if len(kept) < len(self._nodes):
            kept = [type(node).FromString(node.SerializeToString()) for node in kept]
            del self._nodes[:]
            self._nodes.extend(kept)

    def _kept(self) -> Iterator[Any]:
        return (node for node in self._nodes if node.name not in self._dropped)

    def _weights(self, product: Any) -> np.ndarray | Large | None:
        """The constant weights of a product, transposed so that the last dimension is the features.

        See `quirks.bias_of_transposed_products`.
        """
        weights = self._constant(product.input[1])
        if weights is None:
            return None
        if _attr(product, "transpose_b").b:
            if len(self._readers[node_name(product.input[1])]) > 1:
                return None
            weights = weights.T
            product.input[1] = self._add_constant(f"{product.name}/transposed", weights, product)
            product.attr["transpose_b"].b = False
        return weights

    def _with_factor(self, product: Any, weights: np.ndarray | Large, features: int) -> Any:
        """The product, with a factor of each feature that follows it folded into its weights."""
        multiplied = self._operand(product, ("Mul",), features)
        if multiplied is None or len(self._readers[node_name(product.input[1])]) > 1:
            return product
        factor, multiplication = multiplied
        if product.op == "DepthwiseConv2dNative":
            factor = factor.reshape(weights.shape[2:])
        scaled = self._add_constant(
            f"{multiplication.name}/weights", weights * factor, multiplication
        )
        self._replace(multiplication, product, [product.input[0], scaled], (product,))
        return multiplication

    def _operand(
        self, node: Any, ops: Sequence[str], features: int
    ) -> tuple[np.ndarray, Any] | None:
        """A constant for each feature, and the op that combines it with a node, if it is of `ops`.

        Nothing else may read the node.
        """
        reader = self._only_reader(node)
        if reader is None or reader.op not in ops:
            return None
        (other,) = [r for r in reader.input[:2] if node_name(r) != node.name] or [""]
        value = self._constant(other)
        if value is None or value.shape[-1:] != (features,) or value.size != features:
            return None
        if value.ndim > (2 if node.op == "MatMul" else 4):
            return None
        array = value.array() if isinstance(value, Large) else value
        return array.reshape(features), reader

    def _only_reader(self, node: Any) -> Any:
        """The node that reads another one, if there is just one."""
        readers = self._readers[node.name]
        return readers[0] if len(readers) == 1 and node.name not in self._results else None

    def _constant(self, reference: str) -> np.ndarray | Large | None:
        node = self._by_name.get(node_name(reference))
        if node and node.name in self._large:
            return self._large[node.name]
        return tf.make_ndarray(node.attr["value"].tensor) if node and node.op == "Const" else None

    def _add_constant(self, name: str, value: np.ndarray | Large, reader: Any) -> str:
        """Adds a constant that a node reads; returns a reference to it."""
        node = self._nodes.add(op="Const", name=name)
        node.attr["dtype"].type = tf.float32.as_datatype_enum
        if isinstance(value, Large):
            self._large[name] = value
        else:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
        self._by_name[name] = node
        self._readers[name].append(reader)
        return name

    def _join(
        self, product: Any, addition: Any, bias: np.ndarray, last: Any, kinds: Sequence[bytes]
    ) -> None:
        """Makes the last of some nodes one fused op that replaces all of them."""
        alpha = _attr(last, "alpha").f if last.op == "LeakyRelu" else None
        operands = [*product.input[:2], self._add_constant(f"{addition.name}/bias", bias, last)]
        self._replace(last, product, operands, (product, addition))
        last.op = _FUSED[product.op]
        last.attr["num_args"].i = 1
        last.attr["fused_ops"].list.s.extend(kinds)
        if alpha is not None:
            last.attr["leakyrelu_alpha"].f = alpha

    def _replace(
        self, node: Any, product: Any, operands: Sequence[str], others: Sequence[Any]
    ) -> None:
        """Makes a node the product of other operands, and drops the nodes that it replaces."""
        before = [r for x in (*others, node) for r in x.input if r.startswith("^")]
        node.op = product.op
        node.input[:] = [*operands, *dict.fromkeys(before)]
        node.attr.clear()
        for name, value in product.attr.items():
            node.attr[name].CopyFrom(value)
        self._dropped |= {x.name for x in others} - {node.name}


def _attr(node: Any, name: str) -> Any:
    """An attribute of a node, or an empty one; reading `node.attr` would add that to the node."""
    return node.attr[name] if name in node.attr else attr_value_pb2.AttrValue()


def _features(product: Any, weights: np.ndarray | Large) -> int:
    """The size of the last dimension of a product."""
    return weights.shape[-1] * (weights.shape[2] if product.op == "DepthwiseConv2dNative" else 1)
