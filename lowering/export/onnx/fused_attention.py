"""Fuses attention to one node; rows "transformer" and "whisper_encoder" of `tools.bench_onnx`."""

import math
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.patterns import Match, either, op
from lowering.export.onnx.values import array_of, dtype_of, static

# A number beside which any score vanishes. Rows that are all masked then have equal weights, as in
# JAX; with the least number of float32, onnxruntime gives them zeros.
_MASKED = np.float32(-1e30)
_LEAST_MASKED = 1e20


def _scores(query: Any, key: Any, scale: Any) -> Any:
    """Products of queries and keys; the queries or the products are scaled."""
    heads, transposed = _heads(query), op.Transpose(key, perm=[0, 2, 3, 1])
    scaled_heads = either(
        _heads(either(op.Div(query, scale), op.Mul(query, scale))),
        op.Div(heads, scale),
        op.Mul(heads, scale),
    )
    scores = op.MatMul(heads, transposed)
    return either(
        op.Div(scores, scale), op.Mul(scores, scale), op.MatMul(scaled_heads, transposed), scores
    )


def _heads(x: Any) -> Any:
    return op.Transpose(x, perm=[0, 2, 1, 3])


def _attended(scores: Any, value: Any) -> Any:
    return _heads(op.MatMul(op.Softmax(scores, axis=-1), _heads(value)))


def attention(query: Any, key: Any, value: Any, scale: Any) -> Any:
    """Attention to all positions."""
    return _attended(_scores(query, key, scale), value)


def masked_attention(query: Any, key: Any, value: Any, scale: Any, mask: Any, masked: Any) -> Any:
    """Attention to the positions of a mask."""
    return _attended(op.Where(mask, _scores(query, key, scale), masked), value)


def fused(b: Builder, root: ir.Node, found: Match) -> ir.Value | None:
    """An Attention node, whose operands have the features of all heads in one axis."""
    shapes = [found[name].shape for name in ("query", "key", "value")]
    if not b.computes_like_float(found["query"]) or any(shape is None for shape in shapes):
        return None
    query, key, value = (tuple(shape or ()) for shape in shapes)
    if not len(query) == len(key) == len(value) == 4:  # A scale may stand for a query.
        return None
    heads, *features = query[2], query[3], value[3]
    if not all(isinstance(n, int) for n in (heads, *features)):
        return None
    if key != (query[0], key[1], heads, query[3]) or value[:3] != key[:3]:
        return None
    factor = _factor(found)
    mask = _mask(b, root, found, (query[0], heads, query[1], key[1]))
    if factor is None or mask is None:
        return None
    flat = [_flat(b, found[name]) for name in ("query", "key", "value")]
    attributes = {"q_num_heads": heads, "kv_num_heads": heads, "scale": factor}
    made = b.op("Attention", *flat, *mask, **attributes)
    made.shape = ir.Shape(
        [*query[:2], math.prod(n for n in (heads, value[3]) if isinstance(n, int))]
    )
    return _in_shape(b, made, (*query[:3], value[3]))


def _flat(b: Builder, x: ir.Value) -> ir.Value:
    """A value with its last two axes merged."""
    assert x.shape is not None
    batch, length, heads, features = (n if isinstance(n, int) else -1 for n in x.shape)
    if batch == length == -1:
        return b.op("Reshape", x, b.ints(0, 0, heads * features))
    return b.reshape(x, (batch, length, heads * features))


def _in_shape(b: Builder, x: ir.Value, shape: tuple[Any, ...]) -> ir.Value:
    """A value with its last axis split into two again."""
    sizes = [n if isinstance(n, int) else -1 for n in shape]
    if sizes.count(-1) > 1:
        return b.op("Reshape", x, b.ints(0, 0, *sizes[2:]))
    return b.reshape(x, sizes)


def _factor(found: Match) -> float | None:
    """The constant that scores are multiplied by; None if they are multiplied by no constant."""
    scale = found.values.get("scale")
    if scale is None:
        return 1.0
    number = array_of(scale)
    if number is None or number.size != 1:
        return None
    is_divisor = any(node.op_type == "Div" for node in found.nodes)
    return 1 / float(number.item()) if is_divisor else float(number.item())


def _mask(b: Builder, root: ir.Node, found: Match, sizes: tuple[Any, ...]) -> list[ir.Value] | None:
    """What to add to scores of some sizes, in a list that may be empty; None if nothing fits."""
    if "mask" not in found.values:
        return []
    number, mask = array_of(found["masked"]), found["mask"]
    if number is None or number.size != 1 or not number.item() < -_LEAST_MASKED:
        return None
    shape = static(mask)
    if shape is None or len(shape) not in (2, 4) or shape[-2:] != sizes[-2:]:
        return None
    if any(n not in (1, size) for n, size in zip(shape, sizes[4 - len(shape) :], strict=True)):
        return None
    finite = bool(np.isfinite(number))
    dtype = dtype_of(found["query"])
    key = "attention mask", id(mask), finite, dtype, id(root.graph)
    if key not in b.shared:
        added = b.constant(_MASKED if finite else -np.inf, dtype)
        made = b.op("Where", mask, b.like(added, 0), added, dtype=dtype_of(added))
        made.shape = mask.shape
        b.shared[key] = made, mask
    return [b.shared[key][0]]
