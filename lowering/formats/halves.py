"""Words in halves: the upper and the lower 16 bits of each, as int32 from 0 to 65535.

They are for targets that split words, as their integers are exact to fewer bits
(`tfjs.quirks.integers_of_24_bits`). A word is a tensor of int32 there as for the other consumers,
but it is joined of its halves, which are remembered: ops on words take and make halves, and what
joins them is left out of the exported graph where nothing but such ops follows. Loops, branches and
functions carry halves.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, targets
from lowering.context import Context
from lowering.ops import constant, dtypes, emit, integers, memo, modes, move, values
from lowering.ops.values import Broadcastable, Value
from lowering.targets import Mode

# The upper and the lower half; each may be known, and either may be left to be broadcast.
Halves: TypeAlias = tuple[Value, Value]

# One more than the largest half.
SIZE = 1 << 16

_HALVES = "halves of words"
# What halves look like once they are no variables of a program of words.
_PART = np.dtype(np.int32)


def is_word(aval: Any) -> bool:
    """Whether an abstract value is of words: of uint32, or of PRNG keys."""
    return hasattr(aval, "dtype") and (aval.dtype == dtypes.WORD or avals.is_key(aval.dtype))


def of(x: Value) -> Halves:
    """The halves of words: those that they were joined of, or that are computed now."""
    if isinstance(x, Broadcastable):
        high, low = (Broadcastable(values.tensor(part), x.broadcast) for part in of(x.tensor))
        return high, low
    if values.is_known(x):
        word = np.asarray(x).astype(np.uint32)
        return (word >> 16).astype(np.int32), (word & (SIZE - 1)).astype(np.int32)
    if not tf.is_symbolic_tensor(x):
        return _computed(x)
    symbolic: Any = x
    # What a function captures has been joined outside of it.
    for memory in (memo.of_graph(), memo.of(symbolic.graph)):
        known = memory.get(_HALVES, {}).get(id(x))
        if known is not None:
            return known[1]
    if symbolic.op.type == "Const":
        return of(tf.get_static_value(x))
    return _remember(x, _computed(x))


def _computed(x):
    """The halves of int32, which are exact as far as the integers are."""
    size = constant(SIZE, np.int32)
    return emit("FloorMod", emit("FloorDiv", x, size), size), emit("FloorMod", x, size)


def joined(high: Value, low: Value) -> tf.Tensor:
    """Words of their halves."""
    if values.is_known(high) and values.is_known(low):
        return constant(_word(high, low).view(np.int32))
    upper = emit("Mul", values.tensor(high), constant(SIZE, np.int32))
    result = emit("AddV2", upper, values.tensor(low))
    _remember(result, (high, low))
    return result


def _word(high, low):
    return (high.astype(np.uint32) << 16) | low.astype(np.uint32)


def _remember(x, halves):
    if modes.current() is not Mode.EAGER:
        memo.of_graph().setdefault(_HALVES, {})[id(x)] = (x, halves)
    return halves


def whole(x: Value) -> Halves:
    """The halves of words, each in the shape of the words."""
    x = values.full(x)
    high, low = of(x)
    return _in_shape(high, x), _in_shape(low, x)


def _in_shape(half, x):
    if values.is_known(x):
        return half
    shape = x.shape
    if values.is_known(half):
        if shape.is_fully_defined():
            return np.broadcast_to(half, shape.as_list())
        half = constant(half)
    if half.shape.is_fully_defined() and half.shape == shape:
        return half
    if shape.is_fully_defined():
        return move("BroadcastTo", half, integers(shape.as_list()))
    if half.shape.rank == shape.rank and None in half.shape and 1 not in half.shape:
        return half
    return move("BroadcastTo", half, tf.shape(x))


class BroadcastWords(Broadcastable):
    """Words in place of their broadcast, whose halves are broadcast."""

    def full(self) -> tf.Tensor:
        if self._full is None:
            self._full = moved(self.broadcast, self.tensor)
        return self._full


def moved(fun: Callable[..., Any], *operands: Value) -> Any:
    """What a function that only moves elements makes of tensors of words.

    Args:
      fun: takes tensors of int32 and returns one, or several.
      *operands: words.
    """
    if not targets.current().splits(dtypes.WORD):
        return fun(*operands)
    highs, lows = zip(*map(whole, operands), strict=True)
    first, second = (fun(*map(values.tensor, parts)) for parts in (highs, lows))
    if isinstance(first, list | tuple):
        return [joined(high, low) for high, low in zip(first, second, strict=True)]
    return joined(first, second)


def apply(ctx: Context, *operands: Value) -> Any:
    """The results of an equation that moves elements of words, from those on their halves."""
    results = apply_to_each(ctx, ctx.eqn, *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


def apply_to_each(
    ctx: Context, eqn: jex_core.JaxprEqn, *operands: Value, data: Sequence[int] | None = None
) -> list[Value]:
    """The results of an equation on the upper, and on the lower halves of words.

    Args:
      ctx: the context of the rule.
      eqn: the equation; it only moves elements of those words.
      *operands: its operands.
      data: which of them are moved; all words by default.
    """
    is_data = [
        is_word(var.aval) if data is None else i in data and is_word(var.aval)
        for i, var in enumerate(eqn.invars)
    ]
    on_parts = jax_compat.replace_dtypes(eqn, lambda d: _PART if d == dtypes.WORD else d)
    fill_value = eqn.params.get("fill_value")
    results = []
    split = [whole(x) if moves else (x, x) for x, moves in zip(operands, is_data, strict=True)]
    for i in range(2):
        part_eqn = on_parts
        if fill_value is not None:
            filled = int(np.asarray(of(np.asarray(fill_value))[i]))
            part_eqn = on_parts.replace(params={**on_parts.params, "fill_value": filled})
        results.append(ctx.equation(part_eqn, *(parts[i] for parts in split)))
    return [
        joined(high, low) if is_word(var.aval) else high
        for high, low, var in zip(*results, eqn.outvars, strict=True)
    ]


def carried(operands: Sequence[Value], avals_: Sequence[Any]) -> list[Value]:
    """Values as a loop, a branch or a function carries them: words as their halves."""
    if not targets.current().splits(dtypes.WORD):
        return list(operands)
    parts: list[Value] = []
    for x, aval in zip(operands, avals_, strict=True):
        parts.extend(whole(values.held(x, aval.dtype)) if is_word(aval) else (x,))
    return parts


def carried_avals(avals_: Sequence[Any]) -> list[Any]:
    """The abstract values of what `carried` returns."""
    if not targets.current().splits(dtypes.WORD):
        return list(avals_)
    found = []
    for aval in avals_:
        part = jax.core.ShapedArray(avals.physical_shape(aval), _PART) if is_word(aval) else aval
        found.extend([part] * (2 if is_word(aval) else 1))
    return found


def of_carried(facts: Sequence[Any], avals_: Sequence[Any]) -> list[Any]:
    """Something that is known of each value, for each of what `carried` returns."""
    if not targets.current().splits(dtypes.WORD):
        return list(facts)
    pairs = zip(facts, avals_, strict=True)
    return [fact for fact, aval in pairs for _ in range(2 if is_word(aval) else 1)]


def restored(parts: Sequence[Value], avals_: Sequence[Any]) -> list[Value]:
    """The inverse of `carried`."""
    if not targets.current().splits(dtypes.WORD):
        return list(parts)
    rest = iter(parts)
    found: list[Value] = []
    for aval in avals_:
        first = next(rest)
        if is_word(aval):
            second = next(rest)
            are_known = values.is_known(first) and values.is_known(second)
            found.append(_word(first, second) if are_known else joined(first, second))
        else:
            found.append(first)
    return found


# Integers of more than 24 bits are taken apart and joined by two ops of sparse arrays, which all
# backends of TF.js compute outside of textures. The first makes positions in an array of those in
# another; both have fewer elements than int32 has positive numbers, but no position is checked.
_APART = (SIZE // 2 - 1, SIZE)


def enter(x: tf.Tensor) -> tf.Tensor:
    """Words that a program is given, in int32, with their halves.

    They are joined again where they are needed as they were: what is given loses digits as soon as
    an op makes a texture of it, for all other ops, too.
    """
    if modes.current() is Mode.EAGER or not targets.current().splits(dtypes.WORD) or 0 in x.shape:
        return x
    positions, _ = tf.raw_ops.SparseReshape(
        input_indices=tf.cast(tf.reshape(x, integers([-1, 1])), tf.int64),
        input_shape=constant(np.array([math.prod(_APART)], np.int64)),
        new_shape=constant(np.array(_APART, np.int64)),
    )
    first, second = (
        tf.reshape(part, _shape_of(x))
        for part in tf.unstack(tf.cast(positions, tf.int32), 2, axis=-1)
    )
    # Some backends round towards zero, others take the integer for one without a sign.
    size = constant(SIZE, np.int32)
    borrow = tf.raw_ops.FloorDiv(x=second, y=size)
    high = emit("FloorMod", emit("AddV2", first, borrow), size)
    return joined(high, emit("FloorMod", second, size))


def leave(x: tf.Tensor) -> tf.Tensor:
    """Words as a program returns them, in int32; see `enter`.

    The summands are exact as floats.
    """
    is_remembered = id(x) in memo.of_graph().get(_HALVES, {})
    is_split = modes.current() is not Mode.EAGER and targets.current().splits(dtypes.WORD)
    if not (is_split and is_remembered):
        return x
    high, low = map(values.tensor, whole(x))
    half, size = (constant(n, np.int32) for n in (SIZE // 2, SIZE))
    signed = emit("Sub", emit("FloorMod", emit("AddV2", high, half), size), half)
    summands = tf.raw_ops.Pack(values=[emit("Mul", signed, size), low], axis=0)
    result = tf.raw_ops.SparseSegmentSum(
        data=tf.reshape(summands, integers([2, -1])),
        indices=integers([0, 1]),
        segment_ids=integers([0, 0]),
    )
    return tf.reshape(result, _shape_of(x))


def _shape_of(x):
    return integers(x.shape.as_list()) if x.shape.is_fully_defined() else tf.shape(x)
