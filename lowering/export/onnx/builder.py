"""Adds nodes and constants to a graph of ONNX, and leaves out those that need not be there."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes, folding, inference, layout
from lowering.export.onnx.constants import SMALL_BYTES, Constants, Names, is_computed
from lowering.export.onnx.values import (
    array_of,
    dtype_of,
    is_index,
    is_known,
    made_by,
    permutation,
    static,
)

# The key under which a large constant notes the one that it is made of, and how.
FOLDED = "folded"

# Ops that have other results each time.
_RANDOM = frozenset({"RandomUniformLike", "Dropout"})


class Builder:
    """Adds nodes to a graph, or to a graph within another one, whose values it sees.

    Attributes:
      opset: the version of the set of operators.
      nodes: the nodes, in order.
      name: the name that nodes begin with.
      shared: what rules keep for the whole model.
      kept: dtypes in which ops are computed whether or not onnxruntime's CPU has kernels.
      stored: dtypes of 8 and 16 bits in which weights are stored if these hold them.
    """

    def __init__(
        self,
        opset: int,
        outer: "Builder | None" = None,
        kept: Collection[ir.DataType] = (),
        stored: Collection[np.dtype] = (),
    ) -> None:
        self.opset = opset
        self.kept = frozenset(kept)
        self.stored: frozenset[np.dtype] = frozenset(stored) if outer is None else outer.stored
        self.nodes: list[ir.Node] = []
        self.name: str = "" if outer is None else outer.name
        self.names: Names = Names() if outer is None else outer.names
        self.constants: Constants = Constants(self.names) if outer is None else outer.constants
        self.shared: dict[Any, Any] = {} if outer is None else outer.shared
        self._outer = outer
        self._describes = False
        self._results: dict[Any, Sequence[ir.Value]] = {}

    def inner(self) -> "Builder":
        """A builder of a graph within this one."""
        return Builder(self.opset, self, self.kept)

    def computed_in(self, kind: str, dtype: ir.DataType) -> ir.DataType:
        """The dtype in which an op is computed for operands of a dtype."""
        return dtypes.computed_in(kind, dtype, self.opset, self.kept)

    def computes_like_float(self, x: ir.Value) -> bool:
        """Whether ops are those of float32 for a value, as they are for dtypes that are kept."""
        return dtype_of(x) == dtypes.FLOAT or dtype_of(x) in self.kept

    def beside(self, name: str) -> "Builder":
        """A builder of nodes put elsewhere, which begin with a name; their values have shapes."""
        made = self.inner()
        made._outer, made.name, made._describes = None, name, True
        return made

    def op(self, kind: str, *operands: ir.Value | None, **attributes: Any) -> ir.Value:
        """The result of a node; that of an equal one, if there is one.

        Where onnxruntime has no kernel for the dtype, the op is computed in a wider one.

        Args:
          kind: the op of ONNX.
          *operands: its operands; None is for one that is left out.
          **attributes: its attributes. `dtype` is the dtype of the result, by default that of the
            first operand that is no condition.
        """
        known = folding.of_floats(kind, operands)
        if known is not None:
            computed = all(is_computed(x) for x in operands if x is not None)
            return self.constants.value(known, self._within("const"), computed)
        moved = layout.before(self, kind, operands)
        if moved is not None:
            sources, perm = moved
            return layout.transposed(self, self.op(kind, *sources, **attributes), perm)
        first = _deciding(kind, operands)
        assert first is not None
        wider = self.computed_in(kind, dtype_of(first))
        if wider == dtype_of(first) or kind == "Cast":
            made = self.ops(kind, *operands, **attributes)[0]
            if made.shape is None and len(operands) == 1 and kind in layout.ELEMENTWISE:
                made.shape = first.shape
            return made
        result = attributes.pop("dtype", dtypes.RESULTS.get(kind, dtype_of(first)))
        of_dtype = dtypes.OF_ONE_DTYPE.get(kind, len(operands))
        widened = [
            self.cast(x, wider)
            if x is not None and i < of_dtype and dtype_of(x) == dtype_of(first)
            else x
            for i, x in enumerate(operands)
        ]
        return self.cast(self.ops(kind, *widened, **attributes)[0], result)

    def ops(self, kind: str, *operands: ir.Value | None, outputs: int = 1, **attributes: Any):
        """The results of a node with several; dtypes are looked after by the caller."""
        first = _deciding(kind, operands)
        given = None if first is None else dtype_of(first)
        dtype = attributes.pop("dtype", dtypes.RESULTS.get(kind, given))
        key = _key(kind, operands, outputs, attributes)
        has_graph = any(isinstance(x, ir.Graph) for x in attributes.values())
        found = None if has_graph or kind in _RANDOM else self._found(key)
        if found is not None:
            return found
        node = ir.Node(
            "",
            kind,
            operands,
            ir.convenience.convert_attributes(attributes),
            num_outputs=outputs,
            name=self.names.unique(self._within(kind)),
        )
        for i, x in enumerate(node.outputs):
            x.name = self.names.unique(f"{node.name}:{i}")
            if dtype is not None:
                x.type = ir.TensorType(dtype)
        if self._describes:
            inference.describe(node, self.opset)
        self.nodes.append(node)
        self._results[key] = node.outputs
        return node.outputs

    def _found(self, key: Any) -> Sequence[ir.Value] | None:
        builder: Builder | None = self
        while builder is not None:
            if key in builder._results:
                return builder._results[key]
            builder = builder._outer
        return None

    def constant(self, array: Any, dtype: ir.DataType | None = None) -> ir.Value:
        """A value for an array or a number."""
        array = np.asarray(array, None if dtype is None else dtype.numpy())
        return self.constants.value(array, self._within("const"))

    def ints(self, *numbers: Any) -> ir.Value:
        """A constant vector of int64, as shapes and axes are."""
        return self.constant(np.array(numbers, np.int64))

    def like(self, x: ir.Value, number: Any) -> ir.Value:
        """A constant number of the dtype of a value."""
        return self.constant(number, dtype_of(x))

    def cast(self, x: ir.Value, dtype: ir.DataType) -> ir.Value:
        """A value in a dtype."""
        if dtype_of(x) == dtype:
            return x
        if is_known(x):
            return self._folded(x, dtype, x.shape, "cast", lambda a: a.astype(dtype.numpy()))
        before = made_by(x, "Cast")
        if before is not None and (
            _is_reinterpreted(before, x, dtype)
            or dtype_of(before) == dtypes.BOOL
            or (dtype_of(before) == dtype == dtypes.INT64 and is_index(before))
        ):
            return self.cast(before, dtype)
        result = self.op("Cast", x, to=int(dtype), dtype=dtype)
        result.shape = x.shape
        return result

    def int64(self, x: ir.Value) -> ir.Value:
        """A value in int64, as ONNX wants shapes and indices."""
        return self.cast(x, dtypes.INT64)

    def _within(self, name: str) -> str:
        """A name within that of the op that is looked at."""
        return f"{self.name}/{name}" if self.name else name

    def transposed(self, x: ir.Value, perm: Sequence[int]) -> ir.Value | None:
        """The transpose of a value, if that is there already."""
        found = self._found(_key("Transpose", [x], 1, {"perm": list(map(int, perm))}))
        return None if found is None else found[0]

    def copy(self, x: ir.Value) -> ir.Value:
        """The same value, as the result of a node of its own."""
        node = ir.Node("", "Identity", [x], name=self.names.unique(self._within("Identity")))
        (result,) = node.outputs
        result.name, result.type, result.shape = f"{node.name}:0", x.type, x.shape
        self.nodes.append(node)
        return result

    def reshape(self, x: ir.Value, shape: ir.Value | Sequence[int]) -> ir.Value:
        """A value in a shape, in which a size may be -1."""
        if isinstance(shape, ir.Value):
            known = array_of(shape)
            if known is None:
                return self.op("Reshape", x, self.int64(shape), allowzero=1)
            shape = tuple(map(int, known))
        if static(x) == tuple(shape) or _has_shape(x, shape):
            return x
        if is_known(x):
            sizes = static(x)
            size = math.prod(sizes) if sizes is not None else 0
            full = [size // max(-math.prod(shape), 1) if n == -1 else n for n in shape]
            return self._folded(x, dtype_of(x), full, "reshape", lambda a: a.reshape(full))
        for kind in ("Reshape", "Squeeze", "Unsqueeze"):
            source = made_by(x, kind)
            if source is not None:
                return self.reshape(source, shape)
        attributes = {"allowzero": 1} if 0 in shape else {}
        result = self.op("Reshape", x, self.ints(*shape), **attributes)
        if -1 not in shape and result.shape is None:
            result.shape = ir.Shape(shape)
        return result

    def unsqueeze(self, x: ir.Value, *axes: int) -> ir.Value:
        """A value with further axes of size 1, at their places in the result."""
        if not axes:
            return x
        if is_known(x):
            array = np.expand_dims(np.empty(static(x) or (), np.bool_), axes)
            return self.reshape(x, array.shape)
        return self.op("Unsqueeze", x, self.ints(*axes))

    def squeeze(self, x: ir.Value, *axes: int) -> ir.Value:
        """A value without some axes of size 1."""
        if not axes:
            return x
        if x.shape is not None and any(made_by(x, kind) for kind in ("Reshape", "Unsqueeze")):
            sizes = [n if isinstance(n, int) else -1 for n in x.shape]
            sizes = [n for axis, n in enumerate(sizes) if axis not in axes]
            if sizes.count(-1) == 0 or (sizes.count(-1) == 1 and 0 not in sizes):
                return self.reshape(x, sizes)
        return self.op("Squeeze", x, self.ints(*axes))

    def transpose(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """A value whose axes are in another order; transposes one after the other are one."""
        perm = [int(axis) for axis in perm]
        source = made_by(x, "Transpose")
        if source is not None:
            order = permutation(x)
            if source.shape is None and x.shape is not None:
                source.shape = ir.Shape([x.shape[order.index(i)] for i in range(len(order))])
            return self.transpose(source, [order[axis] for axis in perm])
        if perm == sorted(perm):
            return x
        sizes = None if x.shape is None else [x.shape[axis] for axis in perm]
        if is_known(x) and sizes is not None:
            how = "transpose", *perm
            return self._folded(x, dtype_of(x), sizes, how, lambda a: a.transpose(perm))
        result = self.op("Transpose", x, perm=perm)
        if sizes is not None:
            result.shape = ir.Shape(sizes)
        return result

    def reversed(self, x: ir.Value, axes: Sequence[int]) -> ir.Value:
        """A value whose elements are in the opposite order along some axes."""
        if is_known(x):
            how = "reversed", *axes
            return self._folded(x, dtype_of(x), x.shape, how, lambda a: np.flip(a, tuple(axes)))
        count, before_first = len(axes), int(np.iinfo(np.int64).min)
        return self.slice(x, [-1] * count, [before_first] * count, axes, [-1] * count)

    def scaled(self, x: ir.Value, factor: np.ndarray) -> ir.Value:
        """A constant times an array, which is computed with 64 bits."""
        numpy_dtype = dtype_of(x).numpy()
        how = "scaled", factor.shape, factor.tobytes()
        return self._folded(
            x, dtype_of(x), x.shape, how, lambda a: (a * factor).astype(numpy_dtype)
        )

    def concat(self, parts: Sequence[ir.Value], axis: int = 0) -> ir.Value:
        """Values one after the other along an axis."""
        if len(parts) == 1:
            return parts[0]
        if all(map(is_known, parts)):
            return self.constants.joined(parts, axis, self._within("Concat"))
        return self.op("Concat", *parts, axis=axis)

    def slice(
        self, x: ir.Value, starts: Any, ends: Any, axes: Sequence[int], steps: Any = None
    ) -> ir.Value:
        """A slice; all but the axes are values, or sequences of numbers."""
        starts, ends = (
            self.int64(v) if isinstance(v, ir.Value) else self.ints(*v) for v in (starts, ends)
        )
        rest = [] if steps is None or set(steps) == {1} else [self.ints(*steps)]
        return self.op("Slice", x, starts, ends, self.ints(*axes), *rest)

    def _folded(
        self,
        x: ir.Value,
        dtype: ir.DataType,
        shape: Any,
        how: Any,
        function: Callable[[np.ndarray], np.ndarray],
    ) -> ir.Value:
        """A constant that a function makes of another one; `how` tells what the function does."""
        tensor, name = x.const_value, f"{x.name}__folded"
        assert tensor is not None
        if tensor.nbytes <= SMALL_BYTES:
            return self.constants.value(function(tensor.numpy()), name, is_computed(x))
        key = id(x), dtype, tuple(shape), how
        if key not in self.shared:
            made = ir.LazyTensor(
                lambda: ir.Tensor(np.ascontiguousarray(function(tensor.numpy()))),
                dtype=dtype,
                shape=ir.Shape(shape),
            )
            self.shared[key] = value = self.constants.tensor(made, name, is_computed(x))
            # The constant that it is made of; a chain of these keeps all of them alive.
            value.meta[FOLDED] = x, how
        return self.shared[key]


def _has_shape(x: ir.Value, shape: Sequence[int]) -> bool:
    """Whether a value has a shape, of which it has one size that is not known in common."""
    if x.shape is None or shape.count(-1) != 1 or 0 in shape:
        return False
    return [n if isinstance(n, int) else -1 for n in x.shape] == list(shape)


def _key(
    kind: str, operands: Sequence[ir.Value | None], outputs: int, attributes: Mapping[str, Any]
) -> Any:
    """A key that equal nodes have in common."""
    return kind, tuple(map(id, operands)), outputs, repr(sorted(attributes.items()))


def _deciding(kind: str, operands: Sequence[ir.Value | None]) -> ir.Value | None:
    """The operand whose dtype is that of an op."""
    return operands[1] if kind == "Where" else next((x for x in operands if x is not None), None)


def _is_reinterpreted(before: ir.Value, x: ir.Value, dtype: ir.DataType) -> bool:
    """Whether a value is one of integers whose bits are read with and without sign."""
    bits = dtypes.BITS.get(dtype_of(x), 0)
    return bits == dtypes.BITS.get(dtype_of(before)) and dtypes.BITS.get(dtype, 65) <= bits
