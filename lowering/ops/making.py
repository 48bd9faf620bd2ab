"""Makes ops of a graph quickly, from the definition of an earlier op of the same kind.

`tf.raw_ops` finds out the attributes of each op from its operands, which takes three times as long
as making the op does. A program has many ops, but of few kinds, so what was found is cached.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from lowering.caches import Bounded
from lowering.ops import kernels

# How many kinds of ops are in the cache.
_KINDS = 4096

# The types of attributes that are told apart by their values.
_VALUES = (bool, int, str, bytes, tf.DType, type(None))

_makers = Bounded(_KINDS)


def run(op: str, names: Sequence[str], operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """The results of an op of `tf.raw_ops`, run at once or as a part of the graph.

    No tape records an op of a kind that a graph has had before: the gradient of a program is that
    of JAX, not that of its ops.

    Args:
      op: the name of the op.
      names: the names of its inputs.
      operands: its inputs, in their order.
      attrs: its attributes.
    """

    def make() -> Any:
        return getattr(tf.raw_ops, op)(**dict(zip(names, operands, strict=True)), **attrs)

    # Callbacks see what `tf.raw_ops` makes alone.
    is_plain = not (tf.executing_eagerly() or kernels.is_seen_by_others())
    kind = _kind(op, operands, attrs) if is_plain else None
    if kind is None:
        return make()
    results = None

    def first() -> Any:
        nonlocal results
        results = make()
        return _maker(results)

    maker = _makers.get(kind, first)
    if results is not None:
        return results
    if maker is None:
        return make()
    kernels.check(op, first_tensor(operands), attrs)
    return maker(operands)


def again(result: tf.Tensor, operands: Sequence[Any]) -> tf.Tensor:
    """The result of an op of a graph that has one, made again on other operands."""
    maker = _maker(result)
    assert maker is not None
    return maker(operands)


def first_tensor(operands: Sequence[Any]) -> tf.Tensor:
    """The first tensor among the operands of an op, some of which may be lists of tensors."""
    return operands[0][0] if isinstance(operands[0], list | tuple) else operands[0]


def _kind(op: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """What determines the attributes of an op; None if that is not known."""
    dtypes: list[Any] = []
    if not operands:
        return None
    for operand in operands:
        items = operand if isinstance(operand, list | tuple) else (operand,)
        if not all(isinstance(x, tf.Tensor) for x in items):
            return None
        dtypes.append((operand is items, *(x.dtype for x in items)))
    given = []
    for name, value in attrs.items():
        items = value if isinstance(value, list | tuple) else (value,)
        if name == "name" or not all(isinstance(x, _VALUES) for x in items):
            return None
        given.append((name, *((type(x), x) for x in items)))
    return op, tuple(dtypes), tuple(given)


def _maker(results: Any) -> Callable[[Sequence[Any]], Any] | None:
    """A function that makes an op like the one of some results, on operands of the same kinds.

    None for an op whose results are neither a tensor nor a sequence of tensors.
    """
    tensors = [results] if isinstance(results, tf.Tensor) else results
    if not isinstance(tensors, list | tuple) or not tensors:
        return None
    if not all(isinstance(y, tf.Tensor) for y in tensors):
        return None
    first: Any = tensors[0]
    definition = first.op.node_def
    op, dtypes = definition.op, [y.dtype for y in tensors]
    # The others belong to the place in the graph.
    attrs = {name: value for name, value in definition.attr.items() if not name.startswith("_")}
    if isinstance(results, tf.Tensor):
        as_returned: Callable[[Any], Any] = operator.itemgetter(0)
    else:
        as_returned = getattr(type(results), "_make", list)

    def make(operands: Sequence[Any]) -> Any:
        inputs: list[Any] = []
        for operand in operands:
            inputs += operand if isinstance(operand, list | tuple) else (operand,)
        # `create_op` of a graph is this, after a long look at how it was called.
        create = tf.compat.v1.get_default_graph()._create_op_internal
        return as_returned(create(op, inputs, dtypes, name=op, attrs=attrs).outputs)

    return make
