"""The constants of a model, as they are stored."""

import collections
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx import dtypes
from lowering.export.onnx.builder import FOLDED
from lowering.export.onnx.constants import COMPUTED, JOINED, SMALL_BYTES, is_computed
from lowering.export.onnx.values import dtype_of, is_known
from lowering.export.weights import in_fewer_bits


def add(main: ir.Graph, of_program: Iterable[np.dtype], of_weights: Collection[np.dtype]) -> None:
    """Makes the constants that nodes of a graph and its subgraphs read initializers of the graph.

    Args:
      main: the graph.
      of_program: dtypes of up to 16 bits in which constants are stored if these hold them.
      of_weights: dtypes in which the file may store weights, as `in_fewer_bits` takes them.
    """
    for x in _used(main):
        main.initializers[str(x.name)] = x
    _share(main)
    _share_joined(main)
    if of_program:
        for x in list(main.initializers.values()):
            assert x.const_value is not None
            stored = _in_fewer_bits(x.const_value, of_program, of_weights)
            if stored is not None:
                _widen(main, x, stored)


def _in_fewer_bits(
    tensor: Any, of_program: Iterable[np.dtype], of_weights: Collection[np.dtype]
) -> Any:
    """A tensor of fewer bits with the same numbers, or None.

    A large one is lazy: else there would be a copy of each weight until the model is written.
    """
    found = in_fewer_bits(tensor.numpy(), of_program, of_weights)
    if found is None:
        return None
    if tensor.nbytes <= SMALL_BYTES:
        return ir.Tensor(found)
    dtype = found.dtype

    def stored() -> ir.Tensor:
        return ir.Tensor(tensor.numpy().astype(dtype))

    return ir.LazyTensor(stored, dtypes.of(dtype), tensor.shape)


def _used(main: ir.Graph) -> list[ir.Value]:
    """The constants that nodes read, each of them once."""
    used: dict[int, ir.Value] = {}
    for node in ir.traversal.RecursiveGraphIterator(main):
        for x in node.inputs:
            if x is not None and is_known(x) and x.producer() is None:
                used[id(x)] = x
    return list(used.values())


def _share(main: ir.Graph) -> None:
    """Stores large constants once that are read in several orders of their axes."""
    by_source = collections.defaultdict(list)
    for x in main.initializers.values():
        source, how = x.meta.get(FOLDED, (x, None))
        by_source[id(source)].append((source, how, x))
    for group in by_source.values():
        if len(group) == 1:
            continue
        for source, how, x in group:
            if how is None or how[0] != "transpose":
                continue
            del main.initializers[str(x.name)]
            main.initializers[str(source.name)] = source
            _make(main, x, "Transpose", source, perm=list(how[1:]))


def _share_joined(main: ir.Graph) -> None:
    """Stores constants once that nodes read both by themselves and concatenated."""
    for x in list(main.initializers.values()):
        parts, axis = x.meta.get(JOINED, ((), 0))
        if any(main.initializers.get(str(part.name)) is part for part in parts):
            del main.initializers[str(x.name)]
            for part in parts:
                main.initializers[str(part.name)] = part
            _make(main, x, "Concat", *parts, axis=axis)


def _widen(main: ir.Graph, x: ir.Value, stored: Any) -> None:
    """Replaces an initializer by one of fewer bits and the op that widens it."""
    del main.initializers[str(x.name)]
    narrow = ir.Value(
        name=f"{x.name}__stored",
        shape=x.shape,
        type=ir.TensorType(stored.dtype),
        const_value=stored,
    )
    narrow.meta[COMPUTED] = is_computed(x)
    main.initializers[str(narrow.name)] = narrow
    for node, i in list(x.uses()):
        if node.op_type == "Cast":
            node.replace_input_with(i, narrow)
    if x.uses() or x.is_graph_output():
        _make(main, x, "Cast", narrow, to=int(dtype_of(x)))


def _make(main: ir.Graph, x: ir.Value, kind: str, *sources: ir.Value, **attributes: Any) -> None:
    """Replaces an initializer by the result of a node, which is put before all others."""
    given: Sequence[ir.Attr] = ir.convenience.convert_attributes(attributes)
    node = ir.Node("", kind, sources, given, name=f"{x.name}__{kind}")
    (result,) = node.outputs
    result.type, result.shape, name = x.type, x.shape, x.name
    ir.convenience.replace_all_uses_with(x, result)
    x.name = f"{name}__replaced"
    result.name = name
    main.insert_before(main[0], node)
