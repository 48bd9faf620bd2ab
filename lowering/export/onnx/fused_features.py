"""Folds factors and offsets of features into the weights of the layer before them.

They are those of batch norms by known statistics, biases, and scales of single numbers.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import FOLDED, Builder
from lowering.export.onnx.values import (
    array_of,
    dtype_of,
    is_alone,
    is_known,
    made_by,
    permutation,
    static,
)
from lowering.export.weights import in_fewer_bits

# Ops of which one is a root, and those that only give features another place.
_ROOTS = frozenset({"Add", "BatchNormalization", "Div", "Mul", "Sub"})
_MOVES = frozenset({"Reshape", "Squeeze", "Transpose", "Unsqueeze"})

# Attributes of a Gemm that are factors, too; no rule gives them.
_SCALES = ("alpha", "beta")

# Dtypes in which matrices are multiplied with a bias, and in which weights are scaled.
_FLOATS = frozenset({dtypes.FLOAT, dtypes.DOUBLE})


class _Affine(NamedTuple):
    """A factor and an offset for each feature, in float64, which are single numbers if all agree.

    Attributes:
      axis: the axis of the features; None for single numbers.
      factor: by what each is multiplied.
      offset: what is added to each then.
    """

    axis: int | None
    factor: np.ndarray
    offset: np.ndarray


class _Layer(NamedTuple):
    """A product of an array and known weights.

    Attributes:
      node: its node.
      place: which operand the weights are.
      weights: the weights.
      bias: the known bias, if the node has one.
    """

    node: ir.Node
    place: int
    weights: ir.Value
    bias: np.ndarray | None


def fused(b: Builder, root: ir.Node) -> ir.Value | None:
    """The result of ops on the features of a layer, folded into the weights of the layer.

    Ops that move elements may be between them. No other node may read the intermediate values, and
    weights that other nodes read are not changed.
    """
    if root.op_type not in _ROOTS or root.outputs[0].dtype not in {*_FLOATS, *b.kept}:
        return None
    x: ir.Value = root.outputs[0]
    affine, moves, steps = _Affine(None, np.ones(()), np.zeros(())), list[ir.Node](), 0
    while True:
        node = x.producer()
        if node is None or (node is not root and not is_alone(x)):
            return None
        layer = _layer(node)
        if layer is not None:
            break
        before = _before(node, affine)
        if before is None:
            return None
        x, affine = before
        if node.op_type in _MOVES:
            moves.append(node)
        else:
            steps += 1
    made = _with_features(b, layer, affine, steps)
    for node in reversed(moves) if made is not None else ():
        assert made is not None
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        made = b.op(node.op_type, made, *node.inputs[1:], **attributes)
    return made


def _before(node: ir.Node, affine: _Affine) -> tuple[ir.Value, _Affine] | None:
    """The operand of a node, and an affine function of the result as one of that operand."""
    x = node.inputs[0]
    if x is None or x.shape is None:
        return None
    if node.op_type in _MOVES:
        return _before_move(node, x, affine)
    if node.op_type == "BatchNormalization":
        return _before_norm(node, x, affine)
    return _before_numbers(node, x, affine) if node.op_type in _ROOTS else None


def _before_numbers(node: ir.Node, x: ir.Value, affine: _Affine) -> tuple[ir.Value, _Affine] | None:
    """`_before` for an elementwise op with a constant operand."""
    y = node.inputs[1]
    assert y is not None
    left, right = array_of(x), array_of(y)
    if (left is None) == (right is None) or (left is not None and node.op_type == "Div"):
        return None
    x, numbers = (y, left) if right is None else (x, right)
    assert numbers is not None
    # A constant of more axes, or one that repeats other axes, would change the shape.
    if x.shape is None or numbers.ndim > len(x.shape):
        return None
    found = _of_feature(numbers, len(x.shape))
    if found is None or (found[0] is not None and x.shape[found[0]] != numbers.size):
        return None
    axis, vector = found
    with np.errstate(all="ignore"):
        match node.op_type:
            case "Add":
                inner = _Affine(axis, np.ones(()), vector)
            case "Sub" if right is None:
                inner = _Affine(axis, np.full((), -1.0), vector)
            case "Sub":
                inner = _Affine(axis, np.ones(()), -vector)
            case "Mul":
                inner = _Affine(axis, vector, np.zeros(()))
            case _:
                inner = _Affine(axis, 1 / vector, np.zeros(()))
    composed = _composed(affine, inner)
    return None if composed is None else (x, composed)


def _of_feature(numbers: np.ndarray, rank: int) -> tuple[int | None, np.ndarray] | None:
    """The axis along which numbers differ, if any, and the numbers; None if there are several."""
    if numbers.size == 1:
        return None, numbers.astype(np.float64).reshape(())
    shape = (1,) * (rank - numbers.ndim) + numbers.shape
    axes = [axis for axis, size in enumerate(shape) if size != 1]
    return (axes[0], numbers.astype(np.float64).reshape(-1)) if len(axes) == 1 else None


def _composed(outer: _Affine, inner: _Affine) -> _Affine | None:
    """The composition of two affine functions; None if they are along different axes."""
    if None not in (outer.axis, inner.axis) and outer.axis != inner.axis:
        return None
    axis = inner.axis if outer.axis is None else outer.axis
    with np.errstate(all="ignore"):
        factor = outer.factor * inner.factor
        offset = outer.factor * inner.offset + outer.offset
    # Infinite factors of sums are no factors of the terms.
    is_finite = np.isfinite(factor).all() and np.isfinite(offset).all()
    return _Affine(axis, factor, offset) if is_finite else None


def _before_norm(node: ir.Node, x: ir.Value, affine: _Affine) -> tuple[ir.Value, _Affine] | None:
    """`_before` for a batch norm, whose features are axis 1."""
    found = [None if y is None else array_of(y) for y in node.inputs[1:]]
    known = [y.astype(np.float64) for y in found if y is not None]
    if len(known) < len(found):
        return None
    scale, offset, mean, variance = known
    epsilon = node.attributes["epsilon"].as_float()
    factor = scale / np.sqrt(variance + epsilon)
    composed = _composed(affine, _Affine(1, factor, offset - mean * factor))
    return None if composed is None else (x, composed)


def _before_move(node: ir.Node, x: ir.Value, affine: _Affine) -> tuple[ir.Value, _Affine] | None:
    """`_before` for a node that moves elements."""
    if any(y is not None and y.const_value is None for y in node.inputs[1:]):
        return None
    if affine.axis is None:
        return x, affine
    if node.op_type == "Transpose":
        return x, affine._replace(axis=permutation(node.outputs[0])[affine.axis])
    axis = _same_axis(node.outputs[0], x, affine.axis)
    return None if axis is None else (x, affine._replace(axis=axis))


def _same_axis(x: ir.Value, y: ir.Value, axis: int) -> int | None:
    """The axis of one shape of an array that is an axis of another shape; None if there is none."""
    if x.shape is None or y.shape is None:
        return None
    size, behind = x.shape[axis], _sizes(x.shape[axis + 1 :])
    for place, other in enumerate(y.shape):
        if size == other and behind is not None and behind == _sizes(y.shape[place + 1 :]):
            return place
    return None


def _sizes(shape: Sequence[int | ir.SymbolicDim]) -> list[int | str] | None:
    """A key of how many elements a shape has; None if that is not known."""
    named = [size if isinstance(size, int) else size.value for size in shape]
    if None in named:
        return None
    known = math.prod(size for size in named if isinstance(size, int))
    return [known, *(size for size in named if isinstance(size, str))]


def _layer(node: ir.Node) -> _Layer | None:
    """A node as a layer; None if it is none, or its weights are not known."""
    if node.op_type not in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
        return None
    known = [place for place, x in enumerate(node.inputs[:2]) if x is not None and is_known(x)]
    rest = [x for x in node.inputs[2:] if x is not None]
    biases = [array_of(x) for x in rest]
    if len(known) != 1 or any(bias is None for bias in biases):
        return None
    place = known[0]
    weights = node.inputs[place]
    assert weights is not None
    if node.op_type != "MatMul" and (place != 1 or any(x in node.attributes for x in _SCALES)):
        return None
    return _Layer(node, place, weights, biases[0] if biases else None)


def _with_features(b: Builder, layer: _Layer, affine: _Affine, steps: int) -> ir.Value | None:
    """A layer with a factor and an offset of its results, if that is less than so many ops."""
    node, result = layer.node, layer.node.outputs[0]
    if result.shape is None:
        return None
    rank = len(result.shape)
    features = {"MatMul": rank - 1 if layer.place else rank - 2, "Gemm": 1}.get(node.op_type, 1)
    if affine.axis not in (None, features):
        return None
    weights = layer.weights
    if (affine.factor != 1).any():
        scales = _of_weights(layer, affine.factor)
        if scales is None or not _is_for_one(weights) or _is_in_fewer_bits(b, weights):
            return None
        weights = b.scaled(weights, scales)
    operands = [*node.inputs]
    operands[layer.place] = weights
    attributes = {name: attribute.value for name, attribute in node.attributes.items()}
    if layer.bias is None and not affine.offset.any():
        made = b.op(node.op_type, *operands, **attributes)
        made.shape = result.shape
        return made
    if layer.bias is None and node.op_type == "MatMul":
        return _with_bias(b, layer, operands, affine, steps)
    count = result.shape[1]
    if not isinstance(count, int):
        return None
    bias = np.zeros(count) if layer.bias is None else layer.bias.astype(np.float64)
    bias = np.broadcast_to(bias * affine.factor + affine.offset, count)
    made = b.op(node.op_type, *operands[:2], b.constant(bias, dtype_of(result)), **attributes)
    made.shape = result.shape
    return made


def _with_bias(
    b: Builder, layer: _Layer, operands: Sequence[ir.Value | None], affine: _Affine, steps: int
) -> ir.Value | None:
    """A product and an offset: a Gemm of matrices, else another op if there have been more."""
    result = layer.node.outputs[0]
    assert result.shape is not None
    rank, dtype = len(result.shape), dtype_of(result)
    columns = result.shape[-1]
    if rank == 2 and layer.place == 1 and isinstance(columns, int):
        bias = b.constant(np.broadcast_to(affine.offset, columns), dtype)
        plain, attributes = [], {}
        for x, name in zip(operands, ("transA", "transB"), strict=True):
            assert x is not None
            source = made_by(x, "Transpose")
            if source is not None:
                attributes[name] = 1
            plain.append(source or x)
        made = b.op("Gemm", *plain, bias, **attributes)
    elif steps < 2:
        return None
    else:
        product = b.op("MatMul", *operands)
        product.shape = result.shape
        ones = () if layer.place or affine.axis is None else (1,)
        offset = affine.offset.reshape((*affine.offset.shape, *ones))
        made = b.op("Add", product, b.constant(offset, dtype))
    made.shape = result.shape
    return made


def _is_for_one(weights: ir.Value) -> bool:
    """Whether one node alone reads weights, so that folding into them makes no second copy."""
    source, _ = weights.meta.get(FOLDED, (weights, None))
    return len(weights.uses()) == 1 and (source is weights or not source.uses())


def _is_in_fewer_bits(b: Builder, weights: ir.Value) -> bool:
    """Whether the file stores weights in fewer bits; their products with factors may need more.

    onnxruntime itself multiplies the weights of convolutions when it loads the model.
    """
    if not b.stored:
        return False
    assert weights.const_value is not None
    return (
        in_fewer_bits(weights.const_value.numpy(), b.stored, dtypes.of_weights(b.opset)) is not None
    )


def _of_weights(layer: _Layer, factor: np.ndarray) -> np.ndarray | None:
    """The factors of features, in a shape that broadcasts to the weights; None if none does."""
    sizes = static(layer.weights)
    if sizes is None or not factor.shape:
        return None if sizes is None else factor
    node = layer.node
    if node.op_type == "MatMul":
        return factor if layer.place else factor[:, None]
    if node.op_type == "Gemm":
        is_transposed = "transB" in node.attributes and node.attributes["transB"].as_int()
        return factor[:, None] if is_transposed else factor
    ones = [1] * (len(sizes) - 2)
    if node.op_type == "Conv":
        return factor.reshape(-1, 1, *ones)
    # Groups of features have parts of the weights, one after the other.
    is_whole = "group" not in node.attributes or node.attributes["group"].as_int() == 1
    return factor.reshape(-1, *ones) if is_whole else None
