"""Arrays of PRNG keys, as tensors.

A key is a few uint32 words. An array of keys is a uint32 tensor with one more dimension, for the
words. Rules that know of keys (`@rule(..., held=True)`) take and return such tensors. All other
rules see a key as one unsigned integer: a key of two words is a uint64, so the tensor has the shape
of the array of keys, and a rule that moves integers moves keys too. Keys of four words are two such
tensors, and the equation is lowered for each. For consumers, which have no such integers, it is
lowered for each word.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import jax_compat, targets
from lowering.avals import is_key
from lowering.context import Context
from lowering.formats import halves
from lowering.ops import bitcast, constant, dtypes, integers
from lowering.ops.values import Value


def has_keys(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an operand or a result of an equation is an array of keys."""
    return any(is_key_aval(var.aval) for var in (*eqn.invars, *eqn.outvars))


def apply_to_integers(ctx: Context, *operands: Value) -> Any:
    """The results of an equation whose rule does not know of keys; keys go in and out as words.

    All keys of the equation are of one implementation.
    """
    eqn = ctx.eqn
    (dtype,) = {v.aval.dtype for v in (*eqn.invars, *eqn.outvars) if is_key_aval(v.aval)}
    (num_words,) = jax_compat.key_shape(dtype)
    size = 1 if targets.current().emulates(dtypes.WORD) else min(num_words, 2)
    num_parts = num_words // size
    operand_parts = [
        _integers(x, num_words, size) if is_key_aval(var.aval) else [x] * num_parts
        for x, var in zip(operands, eqn.invars, strict=True)
    ]
    integer = np.dtype(np.uint32 if size == 1 else np.uint64)
    eqn_on_integers = jax_compat.replace_dtypes(eqn, lambda d: integer if is_key(d) else d)
    fill_value = eqn.params.get("fill_value")
    if fill_value is not None and size > 1:
        # It fills each word.
        both = fill_value * (1 + (1 << 32))
        eqn_on_integers = eqn_on_integers.replace(params={**eqn.params, "fill_value": both})
    parts = [
        ctx.equation(eqn_on_integers, *(of_operand[i] for of_operand in operand_parts))
        for i in range(num_parts)
    ]
    results = [
        _words_of(group) if is_key_aval(var.aval) else _combine(eqn.primitive.name, group)
        for group, var in zip(zip(*parts, strict=True), eqn.outvars, strict=True)
    ]
    return results if eqn.primitive.multiple_results else results[0]


def is_key_aval(aval: Any) -> bool:
    """Whether an abstract value is an array of keys."""
    return hasattr(aval, "dtype") and is_key(aval.dtype)


def _integers(x: tf.Tensor | np.ndarray, num_words: int, size: int) -> list[Any]:
    """Keys as arrays of integers of so many words: uint32 or uint64."""
    if isinstance(x, np.ndarray):
        numbers = np.ascontiguousarray(x, np.uint32).view(np.uint32 if size == 1 else np.uint64)
        return [numbers[..., i] for i in range(numbers.shape[-1])]
    if size == 1 and num_words > 1:
        return halves.moved(lambda x: tf.unstack(x, num_words, axis=-1), x)
    if num_words == 1:
        return [halves.moved(lambda x: tf.raw_ops.Squeeze(input=x, axis=[-1]), x)]
    if num_words == 2:
        return [bitcast(x, tf.uint64)]
    shape = tf.shape(x)[:-1] if None in x.shape.as_list() else integers(x.shape.as_list()[:-1])
    pairs = tf.reshape(x, tf.concat([shape, integers([num_words // 2, 2])], 0))
    return tf.unstack(bitcast(pairs, tf.uint64), num_words // 2, axis=-1)


def _words_of(parts: Sequence[tf.Tensor]) -> tf.Tensor:
    """The inverse of `_integers`."""
    first, *rest = parts
    if first.dtype.size == 4 and rest:
        return halves.moved(lambda *parts: tf.stack(parts, -1), *parts)
    if first.dtype.size == 4:
        last = constant(-1, np.int32)
        return halves.moved(lambda x: tf.raw_ops.ExpandDims(input=x, axis=last), first)
    if not rest:
        return bitcast(first, tf.uint32)
    return tf.concat([bitcast(x, tf.uint32) for x in parts], -1)


def _combine(primitive: str, parts: Sequence[tf.Tensor]) -> tf.Tensor:
    """The result of `eq` or `ne` on keys, from its results on their parts."""
    result = parts[0]
    for part in parts[1:]:
        result = result & part if primitive == "eq" else result | part
    return result
