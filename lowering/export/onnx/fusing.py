"""Replaces groups of nodes by single ones, where the set of operators has them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import onnx_ir as ir

from lowering.export.onnx import (
    fused_attention,
    fused_dense,
    fused_features,
    fused_groups,
    fused_indices,
    fused_layers,
    fused_pads,
    fused_roundings,
    inference,
    narrowing,
)
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.patterns import find, kinds, pattern

# Takes a builder and a node; returns the value that replaces its result, or None if it has to stay.
Step = Callable[[Builder, ir.Node], ir.Value | None]


class Fusion(NamedTuple):
    """A group and its replacement.

    Attributes:
      pattern: a pattern; see `patterns`.
      replacement: takes a builder, the last node and a match; returns the value that replaces the
        result of the node, or None if the group has to stay.
      since: the set of operators that has the new node.
      last: the last one in which onnxruntime 1.32 has a kernel for it, and does not expand it.
    """

    pattern: Any
    replacement: Callable[..., ir.Value | None]
    since: int
    last: int | None = None


# Patterns of more nodes come first.
LAYERS = (
    Fusion(pattern(fused_layers.scaled_layer_norm), fused_layers.norm, 17),
    Fusion(pattern(fused_layers.layer_norm_without_bias), fused_layers.norm, 17),
    Fusion(pattern(fused_layers.plain_layer_norm), fused_layers.norm, 17),
    Fusion(pattern(fused_layers.scaled_rms_norm), fused_layers.norm, 23),
    Fusion(pattern(fused_layers.plain_rms_norm), fused_layers.norm, 23),
    Fusion(pattern(fused_groups.repeated_first), fused_groups.fused_first, 17),
    Fusion(pattern(fused_groups.repeated), fused_groups.fused, 17),
    Fusion(pattern(fused_groups.reshaped), fused_groups.fused, 17),
    Fusion(pattern(fused_layers.softmax), fused_layers.along_last_axis("Softmax"), 17),
    Fusion(pattern(fused_layers.log_softmax), fused_layers.along_last_axis("LogSoftmax"), 17),
    Fusion(pattern(fused_layers.gelu), fused_layers.activation("Gelu"), 20),
    Fusion(
        pattern(fused_layers.gelu_by_tanh), fused_layers.activation("Gelu", approximate="tanh"), 20
    ),
    Fusion(pattern(fused_layers.hard_swish), fused_layers.activation("HardSwish"), 17),
    Fusion(
        pattern(fused_layers.hard_sigmoid),
        fused_layers.activation("HardSigmoid", alpha=1 / 6, beta=0.5),
        17,
    ),
    *(
        Fusion(fused_roundings.rounding(dtype), fused_roundings.casts(dtype), 19)
        for dtype in fused_roundings.DTYPES
    ),
)
ATTENTION = (
    Fusion(pattern(fused_attention.masked_attention), fused_attention.fused, 23, 24),
    Fusion(pattern(fused_attention.attention), fused_attention.fused, 23, 24),
)


def fuse(b: Builder, graph: ir.Graph) -> None:
    """Replaces what it finds in a graph and in those within it.

    Args:
      b: the builder of the graph, for names and constants.
      graph: the graph.
    """
    graphs = (graph, *graph.subgraphs())
    for each in graphs:
        for node in each:
            inference.describe(node, b.opset)
    for each in graphs:
        if b.kept:
            _replace(b, each, narrowing.narrowed)
        _replace(b, each, fused_dense.fused)
        _replace(b, each, _by_patterns(LAYERS, b.opset))
        _replace(b, each, fused_indices.fused)
        # One axis is padded after the other.
        _replace(b, each, fused_pads.fused, forward=True)
        if b.kept:
            _replace(b, each, narrowing.narrowed)
        # The first layer makes what the others use, too.
        _replace(b, each, _by_patterns(ATTENTION, b.opset), forward=True)
        _replace(b, each, fused_dense.fused)
        # After the patterns, as constants in those, such as of hard activations, are no scales.
        _replace(b, each, fused_features.fused)
        if b.kept:
            # Now a product may follow the transpose of another one.
            _replace(b, each, narrowing.before_transpose, forward=True)


def _by_patterns(fusions: Sequence[Fusion], opset: int) -> Step:
    """A step that replaces the groups of patterns."""
    by_kind: dict[str, list[Fusion]] = {}
    for fusion in fusions:
        if fusion.since <= opset <= (fusion.last or opset):
            for kind in kinds(fusion.pattern):
                by_kind.setdefault(kind, []).append(fusion)

    def step(b: Builder, root: ir.Node) -> ir.Value | None:
        for fusion in by_kind.get(root.op_type, ()):
            for match in find(fusion.pattern, root.outputs[0]):
                replacement = fusion.replacement(b, root, match)
                if replacement is not None:
                    return replacement
        return None

    return step


def _replace(b: Builder, graph: ir.Graph, step: Step, forward: bool = False) -> None:
    """Lets a step replace the results of nodes, from the last to the first unless it is forward."""
    for node in graph if forward else reversed(graph):
        if not any(x.uses() or x.is_graph_output() for x in node.outputs):
            graph.remove(node, safe=True)
            continue
        new = b.beside(node.name or "")
        replacement = step(new, node)
        (old, *_) = node.outputs
        if replacement is None or not _may_replace(replacement, old):
            _forget(b, new.nodes)
            continue
        if not any(replacement.producer() is made for made in new.nodes):
            replacement = new.copy(replacement)
        maker = replacement.producer()
        assert maker is not None
        graph.insert_before(node, new.nodes)
        ir.convenience.replace_all_uses_with(old, replacement, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        maker.name, replacement.name, replacement.shape = node.name, old.name, old.shape


def _may_replace(new: ir.Value, old: ir.Value) -> bool:
    """Whether two values have the same dtype and shape, as far as these are known."""
    if new.dtype is not None and new.dtype != old.dtype:
        return False
    if new.shape is None or old.shape is None:
        return True
    sizes = zip(new.shape, old.shape, strict=False)
    return len(new.shape) == len(old.shape) and all(
        n == m or not (isinstance(n, int) and isinstance(m, int)) for n, m in sizes
    )


def _forget(b: Builder, nodes: Sequence[ir.Node]) -> None:
    """Removes the values of discarded nodes from those that the whole model shares."""
    made = {id(x) for node in nodes for x in node.outputs}
    for key, kept in list(b.shared.items()) if made else ():
        if id(kept[0] if isinstance(kept, tuple) else kept) in made:
            del b.shared[key]
