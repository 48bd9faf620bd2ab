"""Ops on tensors with more axes than their kernels take.

Axes that an op treats alike become one, for the op alone. Which ranks kernels take stands in the
folders of targets. Kernels that broadcast take so many groups of neighbouring axes; those of a
group are of size one in the same operands.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering import targets
from lowering.ops.constants import constant, integers, vector

UNARY = frozenset(
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Inv "
    "Invert IsFinite IsInf IsNan LeakyRelu Log Log1p LogicalNot Neg Reciprocal Relu Relu6 Rint "
    "Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus Sqrt Square Tan Tanh".split()
)
BROADCASTING = frozenset(
    "AddV2 Atan2 BitwiseAnd BitwiseOr BitwiseXor Equal FloorDiv FloorMod Greater GreaterEqual "
    "LeftShift Less LessEqual LogicalAnd LogicalOr Maximum Minimum Mul NotEqual Pow RealDiv "
    "RightShift SelectV2 SquaredDifference Sub TruncateDiv TruncateMod".split()
)
REDUCTIONS = frozenset("All Any Max Mean Min Prod Sum".split())
SCANS = frozenset("Cumprod Cumsum".split())
POSITIONS = frozenset("ArgMax ArgMin".split())
OF_ROWS = frozenset("LogSoftmax Softmax".split())
JOINS = frozenset("ConcatV2 Pack".split())
PARTS = frozenset("Split SplitV Unpack".split())
# The ops that are made to fit here; `tensors.movement` does so with what moves elements.
FITTED = UNARY | BROADCASTING | REDUCTIONS | SCANS | POSITIONS | OF_ROWS | JOINS | PARTS


def are_too_many(op: str, operands: Sequence[Any]) -> bool:
    """Whether operands have more axes than the kernel of an op of `FITTED` takes."""
    limit = targets.current().max_rank(op)
    if limit == math.inf:
        return op in BROADCASTING and _have_many_groups(operands)
    return max(_ranks(operands)) + (op == "Pack") > limit


def _have_many_groups(operands):
    rank = max(_ranks(operands))
    most = targets.current().broadcast_groups
    return rank > most and len(_groups([_known(x, rank) for x in operands])) > most


def _known(x, rank):
    """The sizes of an operand, with leading ones up to a rank."""
    sizes = x.shape.as_list() if isinstance(x, tf.Tensor) else list(np.shape(x))
    return [1] * (rank - len(sizes)) + sizes


def _groups(shapes):
    """Axes that are not of size one in all of some shapes, in groups of neighbours.

    Those of a group are of size one in the same shapes.
    """
    axes = [sizes for sizes in zip(*shapes, strict=True) if any(not _is_one(s) for s in sizes)]
    return [list(group) for _, group in itertools.groupby(axes, lambda a: [*map(_is_one, a)])]


def _ranks(operands):
    for x in operands:
        if isinstance(x, list | tuple):
            yield from _ranks(x)
        else:
            yield _rank(x)


def _rank(x: Any) -> int:
    return x.shape.rank or 0 if isinstance(x, tf.Tensor) else np.ndim(x)


def fitted(
    op: str, run: Callable[..., Any], operands: Sequence[Any], attrs: Mapping[str, Any]
) -> Any:
    """An op of `FITTED` on tensors with fewer axes; `run` makes it of operands and attributes."""
    if op in UNARY | BROADCASTING:
        limit = targets.current().max_rank(op)
        limit = limit if limit < math.inf else targets.current().broadcast_groups
        return by_merged_axes(lambda *merged: run(*merged, **attrs), operands, limit)
    if op in REDUCTIONS:
        return _reduced(op, run, *operands, **attrs)
    if op in SCANS:
        x, axis = operands
        return along_axis(lambda merged: run(merged, constant(1, tf.int32), **attrs), x, axis)
    if op in POSITIONS:
        x, axis = operands
        found = run(tf.reshape(x, _around(x, axis)), constant(1, tf.int32), **attrs)
        return tf.reshape(found, vector(_without(_sizes(x), [_number(axis)])))
    if op in OF_ROWS:
        (x,) = operands
        *rows, last = _sizes(x)
        merged = vector([math.prod(rows), last])
        return tf.reshape(run(tf.reshape(x, merged), **attrs), vector([*rows, last]))
    return _joined(op, run, operands, attrs) if op in JOINS else _parts(op, run, operands, attrs)


def by_merged_axes(
    run: Callable[..., tf.Tensor], operands: Sequence[tf.Tensor], limit: float
) -> tf.Tensor:
    """An elementwise op on tensors of any known rank, which are broadcast to one shape.

    Its operands get no more axes than `limit`.
    """
    operands = list(map(tf.convert_to_tensor, operands))
    rank = max(map(_rank, operands))
    shapes = [[1] * (rank - operand.shape.rank) + _sizes(operand) for operand in operands]
    groups = _groups(shapes)
    longest = [next((s for s in sizes if not _is_one(s)), 1) for sizes in zip(*shapes, strict=True)]
    if len(groups) > limit:
        merged = [_repeated(x, own, longest) for x, own in zip(operands, shapes, strict=True)]
        return tf.reshape(run(*merged), vector(longest))
    merged = [
        tf.reshape(operand, vector([math.prod(sizes[i] for sizes in group) for group in groups]))
        for i, operand in enumerate(operands)
    ]
    return tf.reshape(run(*merged), vector(longest))


def _repeated(x, own, sizes):
    """The elements of `x`, broadcast one axis after the other, as a vector; a scalar stays one."""
    if all(map(_is_one, own)):
        return tf.reshape(x, [])
    done = list(own)
    for axis, size in enumerate(sizes):
        if _is_one(own[axis]) and not _is_one(size):
            before, after = math.prod(done[:axis]), math.prod(done[axis + 1 :])
            x = tf.reshape(x, vector([before, 1, after]))
            x = tf.broadcast_to(x, vector([before, size, after]))
            done[axis] = size
    return tf.reshape(x, [-1])


def _reduced(op, run, x, axes, keep_dims=False):
    """Reduces with neighbouring axes merged that are all reduced or all kept.

    If there are still too many, one of them is reduced after the other, as the middle one of three.
    """
    sizes, reduced = _sizes(x), {axis % _rank(x) for axis in _numbers(axes)}
    kept = [1 if axis in reduced else size for axis, size in enumerate(sizes)]
    groups = [
        list(group) for _, group in itertools.groupby(range(len(sizes)), reduced.__contains__)
    ]
    together = len(groups) <= targets.current().max_rank(op)
    if together:
        merged = [math.prod(sizes[axis] for axis in group) for group in groups]
        places = [place for place, group in enumerate(groups) if group[0] in reduced]
        x = run(tf.reshape(x, vector(merged)), integers(places))
    for group in () if together else groups:
        if group[0] in reduced:
            before, after = kept[: group[0]], sizes[group[-1] + 1 :]
            middle = math.prod(sizes[axis] for axis in group)
            merged = vector([math.prod(before), middle, math.prod(after)])
            x = run(tf.reshape(x, merged), integers([1]))
    return tf.reshape(x, vector(kept if keep_dims else _without(sizes, reduced)))


def _joined(op, run, operands, attrs):
    """Joins tensors along an axis, or along a new one."""
    xs, *axes = operands
    axis, rank = _number(axes[0] if axes else attrs["axis"]), _rank(xs[0])
    if op == "Pack":
        axis %= rank + 1
        sizes = _sizes(xs[0])
        merged = vector([math.prod(sizes[:axis]), math.prod(sizes[axis:])])
        joined = run([tf.reshape(x, merged) for x in xs], axis=1)
        return tf.reshape(joined, vector([*sizes[:axis], len(xs), *sizes[axis:]]))
    axis %= rank
    sizes = _sizes(xs[0])
    total = sum(_sizes(x)[axis] for x in xs)
    joined = run([tf.reshape(x, _around(x, axis)) for x in xs], constant(1, tf.int32))
    return tf.reshape(joined, vector([*sizes[:axis], total, *sizes[axis + 1 :]]))


def _parts(op, run, operands, attrs):
    """Splits a tensor along an axis."""
    middle = constant(1, tf.int32)
    if op == "Unpack":
        (x,) = operands
        axis = attrs["axis"] % _rank(x)
        parts = run(tf.reshape(x, _around(x, axis)), num=attrs["num"], axis=1)
    elif op == "Split":
        axis, x = operands
        axis = _number(axis) % _rank(x)
        parts = run(middle, tf.reshape(x, _around(x, axis)), **attrs)
    else:
        x, lengths, axis = operands
        axis = _number(axis) % _rank(x)
        parts = run(tf.reshape(x, _around(x, axis)), lengths, middle, **attrs)
    sizes = _sizes(x)
    own = [[] if op == "Unpack" else [_sizes(part)[1]] for part in parts]
    return [
        tf.reshape(part, vector([*sizes[:axis], *size, *sizes[axis + 1 :]]))
        for part, size in zip(parts, own, strict=True)
    ]


def along_axis(
    run: Callable[[tf.Tensor], tf.Tensor], x: tf.Tensor, axis: int | tf.Tensor
) -> tf.Tensor:
    """`run`, which changes nothing but an axis, of `x` with this as the middle one of three."""
    result, sizes = run(tf.reshape(x, _around(x, axis))), _sizes(x)
    sizes[_number(axis) % len(sizes)] = _sizes(result)[1]
    return tf.reshape(result, vector(sizes))


def _around(x, axis):
    """The shape of `x` with an axis as the middle one of three."""
    sizes, axis = _sizes(x), _number(axis) % _rank(x)
    return vector([math.prod(sizes[:axis]), sizes[axis], math.prod(sizes[axis + 1 :])])


def _number(axis):
    return axis if isinstance(axis, int) else int(tf.get_static_value(axis).item())


def _numbers(axes):
    return tf.get_static_value(axes).reshape(-1).tolist()


def _without(sizes, axes):
    return [size for axis, size in enumerate(sizes) if axis not in axes]


def _is_one(size: int | tf.Tensor) -> bool:
    return isinstance(size, int) and size == 1


def _sizes(x: tf.Tensor) -> list[int | tf.Tensor]:
    """The sizes of the axes: ints where they are known, else int32 scalars."""
    known = x.shape.as_list()
    if None not in known:
        return known
    sizes = tf.unstack(tf.shape(x), len(known))
    return [size if dim is None else dim for dim, size in zip(known, sizes, strict=True)]
