"""Weights of 8 and 4 bits in the place of float32, for `quantize="dynamic"` and `"int4"`.

The ops and the steps are those of onnxruntime's quantizer, which holds a model several times. Here
one weight after the other is quantized, and the arrays of the program stay where they are.
Operands of products of 8 bits have no signs, like the weights: without VNNI, sums of two products
of unlike integers may overflow 16 bits.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from lowering.export.onnx.constants import Names, is_computed
from lowering.export.onnx.dtypes import FLOAT, INT32, UINT8
from lowering.export.onnx.values import array_of, permutation

_BITS = {"dynamic": 8, "int4": 4}

# Weights of 4 bits have a scale for each block of so many elements of a column.
_BLOCK = 32

# Which operand is the weight, by op.
WEIGHTS = {"MatMul": 1, "Gemm": 1, "Conv": 1, "Gather": 0}


class _Integers(NamedTuple):
    """Integers that stand for floats: `scale * (values - zero)`."""

    values: ir.Value
    scale: ir.Value
    zero: ir.Value


def quantize(model: ir.Model, quantization: str) -> bool:
    """Quantizes the weights of a model, and says whether there are any.

    Args:
      model: the model; its constants are in its main graph.
      quantization: "dynamic" or "int4".
    """
    quantizer = _Quantizer(model, _BITS[quantization])
    rules: Mapping[str, Callable[[ir.Node], bool]] = {
        "MatMul": quantizer.product,
        "Gemm": quantizer.product,
    }
    if quantization == "dynamic":
        rules = {**rules, "Conv": quantizer.convolution, "Gather": quantizer.lookup}
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    # All of them are visited, whatever the first one gives.
    found = any([rules[node.op_type](node) for node in nodes if node.op_type in rules])
    common.RemoveUnusedNodesPass()(model)
    return found


def array_of_weight(x: ir.Value | None) -> np.ndarray | None:
    """The array of a weight of floats, which nodes may widen or transpose.

    It is None for other values, those among them that the program or lowering computes of nothing:
    matrices of Fourier transforms, of cumulative sums, and of changes of sizes, tables, masks.
    """
    if x is None or x.dtype is None or not x.dtype.is_floating_point() or is_computed(x):
        return None
    known, node = array_of(x), x.producer()
    if known is not None or node is None or node.op_type not in ("Cast", "Transpose"):
        return known
    source = array_of_weight(node.inputs[0])
    if source is None:
        return None
    if node.op_type == "Cast":
        return source.astype(x.dtype.numpy())
    return source.transpose(permutation(x))


class _Quantizer:
    """Quantizes nodes of a model; what several nodes read is quantized once."""

    def __init__(self, model: ir.Model, bits: int):
        self._main = model.graph
        self._bits = bits
        self._made: dict[Any, Any] = {}
        self._names = Names()
        nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
        values = [*model.graph.inputs, *(x for node in nodes for x in node.outputs)]
        names = [*model.graph.initializers, *(x.name for x in values), *(x.name for x in nodes)]
        for name in names:
            self._names.unique(str(name))

    def product(self, node: ir.Node) -> bool:
        """Quantizes the right operand of a product, in 8 bits the left one, too."""
        x, weight, *bias = node.inputs
        array = _as_operand(node, array_of_weight(weight))
        if x is None or weight is None or array is None:
            return False
        key = id(weight), tuple(array.shape), array.strides
        if self._bits == 4:
            right = self._four_bits(node, key, weight, array)
            made = right and self._add(node, "MatMul", x, right)
        else:
            # MatMulInteger takes scales of columns only for matrices.
            integers = self._integers(key, weight, array, axis=0 if array.ndim == 2 else None)
            made = integers and self._of_integers(node, "MatMulInteger", x, integers)
        if not made:
            return False
        for each in filter(None, bias):
            made = self._add(node, "Add", made, each)
        return self._replace(node, made)

    def convolution(self, node: ir.Node) -> bool:
        """Quantizes the operands of a convolution."""
        x, weight, *bias = node.inputs
        array = array_of_weight(weight)
        if x is None or x.dtype != FLOAT or weight is None or array is None:
            return False
        integers = self._integers(("filter", id(weight)), weight, array)
        if integers is None:
            return False
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        made = self._of_integers(node, "ConvInteger", x, integers, **attributes)
        for each in filter(None, bias):
            sizes = np.array([1, -1, *[1] * (array.ndim - 2)])
            shape = self._constant(self._main, ir.Tensor(sizes), f"{each.name}__shape")
            made = self._add(node, "Add", made, self._add(node, "Reshape", each, shape))
        return self._replace(node, made)

    def lookup(self, node: ir.Node) -> bool:
        """Quantizes a table, all of whose rows have one scale."""
        table, index = node.inputs
        array = array_of_weight(table)
        if table is None or table.dtype != FLOAT or array is None:
            return False
        integers = self._integers(("table", id(table)), table, array)
        if integers is None:
            return False
        attributes = {name: attribute.value for name, attribute in node.attributes.items()}
        found = self._add(node, "Gather", integers.values, index, dtype=UINT8, **attributes)
        found.shape = node.outputs[0].shape
        return self._replace(
            node, self._add(node, "DequantizeLinear", found, integers.scale, integers.zero)
        )

    def _of_integers(
        self, node: ir.Node, kind: str, x: ir.Value, weight: _Integers, **attributes: Any
    ) -> ir.Value:
        """A sum of products of integers, as floats: the groups that onnxruntime fuses."""
        left = self._operand(node, x)
        operands = left.values, weight.values, left.zero, weight.zero
        total = self._add(node, kind, *operands, dtype=INT32, **attributes)
        total.shape = node.outputs[0].shape
        scale = self._add(node, "Mul", left.scale, weight.scale)
        scale.shape = weight.scale.shape
        floats = self._add(node, "Cast", total, to=int(FLOAT))
        floats.shape = total.shape
        result = self._add(node, "Mul", floats, scale)
        result.shape = total.shape
        return result

    def _operand(self, node: ir.Node, x: ir.Value) -> _Integers:
        """An operand that is quantized when the model runs, once in each graph."""
        key = "operand", id(x), id(node.graph)
        if key not in self._made:
            values = self._add(node, "DynamicQuantizeLinear", x, dtype=UINT8, count=3)
            values.shape = x.shape
            maker = values.producer()
            assert maker is not None
            _, scale, zero = maker.outputs
            scale.type, zero.type = ir.TensorType(FLOAT), ir.TensorType(UINT8)
            scale.shape = zero.shape = ir.Shape(())
            self._made[key] = _Integers(values, scale, zero)
        found: _Integers = self._made[key]
        return found

    def _integers(
        self, key: Any, x: ir.Value, array: np.ndarray, axis: int | None = None
    ) -> _Integers | None:
        """A weight of 8 bits; None if it is not finite.

        Args:
          key: what the weight is known by.
          x: the weight.
          array: its value.
          axis: the axis whose elements share a scale; None if all elements do.
        """
        if key not in self._made:
            found = quantized(np.asarray(array, np.float32), 8, axis)
            self._made[key] = found and _Integers(
                *(
                    self._constant(self._main, ir.Tensor(each), f"{x.name}__{what}")
                    for what, each in zip(("quantized", "scale", "zero_point"), found, strict=True)
                )
            )
        made: _Integers | None = self._made[key]
        return made

    def _four_bits(
        self, node: ir.Node, key: Any, x: ir.Value, array: np.ndarray
    ) -> ir.Value | None:
        """A weight that is made of 4 bits; None if it is not finite.

        onnxruntime takes a product and its weight of 4 bits together, and looks for the weight
        nowhere but in the graph of the product.
        """
        graph = node.graph
        assert isinstance(graph, ir.Graph)
        if key not in self._made:
            self._made[key] = _blocks(np.asarray(array, np.float32))
        if self._made[key] is None:
            return None
        here = *key, id(graph)
        if here not in self._made:
            constants = (
                self._constant(graph, each, f"{x.name}__{what}")
                for what, each in zip(
                    ("quantized", "scale", "zero_point"), self._made[key](), strict=True
                )
            )
            axis = array.ndim - 2
            result = self._add(node, "DequantizeLinear", *constants, axis=axis, block_size=_BLOCK)
            result.shape = ir.Shape(array.shape)
            self._made[here] = result
        made: ir.Value = self._made[here]
        return made

    def _constant(self, graph: ir.Graph, tensor: Any, name: str) -> ir.Value:
        """A constant of a graph."""
        tensor.name = self._names.unique(name)
        value = ir.Value(
            name=tensor.name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(tensor.dtype),
            const_value=tensor,
        )
        graph.initializers[str(value.name)] = value
        return value

    def _add(
        self,
        before: ir.Node,
        kind: str,
        *operands: ir.Value | None,
        dtype: ir.DataType = FLOAT,
        count: int = 1,
        **attributes: Any,
    ) -> ir.Value:
        """The first result of a new node before another one."""
        given: Sequence[ir.Attr] = ir.convenience.convert_attributes(attributes)
        name = self._names.unique(f"{before.name}__{kind}")
        node = ir.Node("", kind, operands, given, num_outputs=count, name=name)
        for x in node.outputs:
            x.name = self._names.unique(f"{name}:0")
        assert before.graph is not None
        before.graph.insert_before(before, node)
        result = node.outputs[0]
        result.type = ir.TensorType(dtype)
        return result

    def _replace(self, node: ir.Node, new: ir.Value) -> bool:
        """Puts a value in the place of a node's result."""
        (old,) = node.outputs
        graph, maker = node.graph, new.producer()
        assert graph is not None and maker is not None
        new.shape, new.type, maker.name, name = old.shape, old.type, node.name, old.name
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        new.name = name
        return True


def _as_operand(node: ir.Node, array: np.ndarray | None) -> np.ndarray | None:
    """The right operand of a product of float32; None if there is none that is known."""
    if array is None or array.ndim < 2 or node.outputs[0].dtype != FLOAT:
        return None
    if node.op_type == "MatMul":
        return array
    values = {name: attribute.value for name, attribute in node.attributes.items()}
    if values.get("transA", 0) or values.get("alpha", 1) != 1 or values.get("beta", 1) != 1:
        return None
    return array.T if values.get("transB", 0) else array


def quantized(
    array: np.ndarray, bits: int, axis: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """An array as integers between its least and its largest number, zero included.

    Args:
      array: floats.
      bits: those of an integer.
      axis: the axis whose elements share a scale; None if all elements do.

    Returns:
      The integers, and the scales and integers for zero, which lack the axis; None for numbers that
      are not finite.
    """
    steps, is_kept = 2**bits - 1, axis is not None
    low = np.minimum(array.min(axis, keepdims=is_kept, initial=0), 0)
    high = np.maximum(array.max(axis, keepdims=is_kept, initial=0), 0)
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        return None
    scale = (np.float64(high) - low) / steps
    scale = np.where(scale < np.finfo(np.float32).tiny, 1, scale)
    zero = np.rint(-low / scale).astype(np.float32)
    scale = scale.astype(np.float32)
    numbers = np.divide(array, scale)
    numbers += zero
    np.rint(numbers, out=numbers)
    np.clip(numbers, 0, steps, out=numbers)
    parts = scale, zero.astype(np.uint8)
    return numbers.astype(np.uint8), *(np.squeeze(x, axis) for x in parts)


def _blocks(array: np.ndarray) -> Callable[[], tuple[Any, Any, Any]] | None:
    """Makes tensors of a matrix, or several, whose columns have a scale for each block of 4 bits.

    Returns:
      A function that gives the integers, the scales and the integers for zero, as often as they are
      stored; None for numbers that are not finite.
    """
    *batch, rows, columns = array.shape
    padded = np.pad(array, [*[(0, 0)] * len(batch), (0, -rows % _BLOCK), (0, 0)])
    found = quantized(padded.reshape(*batch, -1, _BLOCK, columns), 4, -2)
    if found is None:
        return None
    values, scale, zero = found
    values = values.reshape(*batch, -1, columns)[..., :rows, :]
    packed, zeros = _packed(values), _packed(zero)
    return lambda: (
        ir.PackedTensor(packed, ir.DataType.UINT4, shape=values.shape),
        ir.Tensor(scale),
        ir.PackedTensor(zeros, ir.DataType.UINT4, shape=zero.shape),
    )


def _packed(values: np.ndarray) -> np.ndarray:
    """Two integers of 4 bits in each byte, the first one in the lower bits."""
    flat = np.pad(values.reshape(-1), (0, values.size % 2))
    return flat[::2] | flat[1::2] << 4
