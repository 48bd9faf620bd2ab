"""Removes reshapes to and from matrices around products of stacks of rows.

Rows "transformer" and "whisper_encoder" of `tools.bench_onnx`.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import onnx_ir as ir

from lowering.export.onnx.builder import Builder
from lowering.export.onnx.values import is_alone, is_known, made_by, static


class _Dense(NamedTuple):
    """A product of rows, reshaped before and after.

    Attributes:
      source: what the rows are reshaped from.
      weights: the matrix that they are multiplied by.
      lead: the first axes of the source and of the result; -1 is for a size that is not known.
      rest: the last ones of the result.
    """

    source: ir.Value
    weights: ir.Value
    lead: list[int]
    rest: list[int]

    def multiplied(self, b: Builder) -> ir.Value:
        """The product, without reshapes of the first axes."""
        assert self.weights.shape is not None
        rows, features = tuple(self.weights.shape)
        source = b.reshape(self.source, [*self.lead, rows if isinstance(rows, int) else -1])
        made = b.op("MatMul", source, self.weights)
        made.shape = ir.Shape([*(None if n == -1 else n for n in self.lead), features])
        return made

    def in_shape(self, b: Builder, x: ir.Value) -> ir.Value:
        """A value with its last axis split into several."""
        return x if len(self.rest) == 1 else b.reshape(x, [*self.lead, *self.rest])


def fused(b: Builder, root: ir.Node) -> ir.Value | None:
    """The result of a reshape of a product of reshaped rows, or of a sum of that with a bias.

    The first reshape makes a matrix of an array of rows; the other one gives back all axes but the
    last, which may become several.
    """
    if root.op_type == "Add":
        return _with_bias(b, root)
    dense = _dense(root)
    return None if dense is None else dense.in_shape(b, dense.multiplied(b))


def _with_bias(b: Builder, root: ir.Node) -> ir.Value | None:
    for x, bias in (root.inputs, root.inputs[::-1]):
        node = None if x is None else x.producer()
        if x is None or node is None or bias is None or not is_known(bias) or not is_alone(x):
            continue
        dense = _dense(node)
        if dense is not None and _without_ones(static(bias)) == _without_ones(dense.rest):
            made = dense.multiplied(b)
            total = b.op("Add", made, b.reshape(bias, (-1,)))
            total.shape = made.shape
            return dense.in_shape(b, total)
    return None


def _without_ones(sizes: Sequence[int] | None) -> list[int]:
    """Sizes without those of 1 at the beginning."""
    sizes = list(sizes or ())
    while sizes and sizes[0] == 1:
        del sizes[0]
    return sizes


def _dense(root: ir.Node) -> _Dense | None:
    result, product = root.outputs[0], root.inputs[0]
    node = None if product is None else product.producer()
    if product is None or root.op_type != "Reshape" or node is None or node.op_type != "MatMul":
        return None
    rows, weights = node.inputs
    assert rows is not None and weights is not None
    sizes = static(weights)
    if sizes is None or len(sizes) != 2 or result.shape is None or not is_alone(product):
        return None
    if rows.shape is None or len(rows.shape) != 2:
        return None
    again = _sizes(result)
    for source in _sources(rows):
        given = _sizes(source)
        for count in range(2, len(again)):
            lead, rest = again[:count], again[count:]
            if given[:count] != lead or lead.count(-1) > 1:
                break
            if math.prod(rest) == sizes[1] and math.prod(given[count:]) == sizes[0]:
                return _Dense(source, weights, lead, rest)
    return None


def _sources(x: ir.Value) -> Iterator[ir.Value]:
    """The values that a value is reshaped from, one after the other, whose ranks are known."""
    source = made_by(x, "Reshape")
    while source is not None:
        if source.shape is not None:
            yield source
        source = made_by(source, "Reshape")


def _sizes(x: ir.Value) -> list[int]:
    """The shape of a value; -1 is for what is not known."""
    return [n if isinstance(n, int) else -1 for n in x.shape or ()]
