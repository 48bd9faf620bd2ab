"""Finds groups of nodes by example: a pattern is a function of what the group begins with.

`op.Mul(x, op.Sigmoid(x))` stands for two nodes, and `find` tells which values of a graph are `x`.
"""

import dataclasses
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.export.onnx.values import array_of

# Ops whose operands may be swapped.
_COMMUTATIVE = frozenset({"Add", "Max", "Min", "Mul"})

# How far a constant may be from the number of a pattern, which people write with few digits.
_TOLERANCE = 1e-6


@dataclasses.dataclass(frozen=True)
class _Variable:
    """Any value; the same one wherever its name occurs."""

    name: str


@dataclasses.dataclass(frozen=True)
class _Either:
    """A value that one of several patterns matches."""

    options: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class _Product:
    """A product of several factors, whatever their order and however they are grouped."""

    factors: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class _Op:
    """The result of a node with one output."""

    kind: str
    operands: tuple[Any, ...]
    attributes: tuple[tuple[str, Any], ...]


class _Ops:
    def __getattr__(self, kind: str) -> Callable[..., _Op]:
        return lambda *operands, **attributes: _Op(kind, operands, tuple(attributes.items()))


# Patterns of nodes: `op.Add(x, 1.0)` matches an Add, whose second operand is a constant.
op = _Ops()


def either(*options: Any) -> Any:
    """A pattern that matches what one of several patterns matches."""
    return _Either(options)


def product(*factors: Any) -> Any:
    """A pattern of a product, in any order."""
    return _Product(factors)


@dataclasses.dataclass(frozen=True)
class Match:
    """A match of a pattern: its values and nodes.

    Attributes:
      values: the values of the parameters of the pattern, by name.
      nodes: the nodes of the group.
    """

    values: Mapping[str, ir.Value]
    nodes: tuple[ir.Node, ...] = ()

    def __getitem__(self, name: str) -> ir.Value:
        return self.values[name]


def pattern(function: Callable[..., Any]) -> Any:
    """The pattern that a function makes of its parameters."""
    return function(*map(_Variable, inspect.signature(function).parameters))


def kinds(found: Any) -> set[str]:
    """The ops that the last node of a group may be."""
    match found:
        case _Op():
            return {found.kind}
        case _Product():
            return {"Mul"}
        case _Either():
            return set().union(*map(kinds, found.options))
    return set()


def find(wanted: Any, x: ir.Value) -> Iterator[Match]:
    """The matches of a pattern whose inner values no node outside of the match reads."""
    for found in _matches(wanted, x, Match({})):
        inside = set(found.nodes)
        if all(
            node is x.producer()
            or not any(y.is_graph_output() or set(y.consumers()) - inside for y in node.outputs)
            for node in inside
        ):
            yield found


def _matches(wanted: Any, x: ir.Value | None, found: Match) -> Iterator[Match]:
    if x is None:
        return
    match wanted:
        case _Variable():
            if found.values.get(wanted.name, x) is x:
                yield Match({**found.values, wanted.name: x}, found.nodes)
        case _Either():
            for option in wanted.options:
                yield from _matches(option, x, found)
        case _Product():
            yield from _matches_product(wanted.factors, x, found)
        case _Op():
            yield from _matches_op(wanted, x, found)
        case _:
            array = array_of(x)
            if array is not None and array.size == 1 and _is_number(array, wanted):
                yield found


def _is_number(array: np.ndarray, wanted: float) -> bool:
    """Whether an array has a number, as exactly as its dtype has it."""
    digits = np.finfo(array.dtype).eps if array.dtype.kind == "f" else 0
    return bool(np.isclose(array, wanted, max(_TOLERANCE, float(digits)), equal_nan=True))


def _matches_op(wanted: _Op, x: ir.Value, found: Match) -> Iterator[Match]:
    node = x.producer()
    if node is None or node.op_type != wanted.kind or len(node.inputs) != len(wanted.operands):
        return
    attributes = node.attributes
    if any(k not in attributes or _plain(attributes[k].value) != v for k, v in wanted.attributes):
        return
    orders = [wanted.operands]
    if wanted.kind in _COMMUTATIVE and len(wanted.operands) == 2:
        orders.append(wanted.operands[::-1])
    for operands in orders:
        yield from _all(operands, node.inputs, Match(found.values, (*found.nodes, node)))


def _plain(value: Any) -> Any:
    """The value of an attribute, of several numbers as a list."""
    return list(value) if isinstance(value, tuple) else value


def _matches_product(factors: Sequence[Any], x: ir.Value, found: Match) -> Iterator[Match]:
    if len(factors) == 1:
        yield from _matches(factors[0], x, found)
        return
    node = x.producer()
    if node is None or node.op_type != "Mul":
        return
    inside = Match(found.values, (*found.nodes, node))
    for count in range(1, len(factors)):
        for first in itertools.combinations(range(len(factors)), count):
            parts = (
                _Product(tuple(f for i, f in enumerate(factors) if (i in first) == is_first))
                for is_first in (True, False)
            )
            yield from _all(tuple(parts), node.inputs, inside)


def _all(wanted: Sequence[Any], values: Sequence[ir.Value | None], found: Match) -> Iterator[Match]:
    if not wanted:
        yield found
        return
    for first in _matches(wanted[0], values[0], found):
        yield from _all(wanted[1:], values[1:], first)
