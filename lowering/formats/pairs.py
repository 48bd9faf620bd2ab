"""Pairs: complex numbers as consumers of graphs hold them, in a last dimension of two real numbers.

No consumer has arithmetic of complex numbers. A primitive that moves elements, or is linear, is
lowered for the real and for the imaginary parts. Others are decompositions into real ones.
"""

from typing import Any

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat
from lowering.context import Context
from lowering.ops import integers, memo, modes, move, values
from lowering.ops.values import Value
from lowering.registry import Trait, facts
from lowering.targets import Mode

_PARTS = "parts of pairs"
# The highest rank of the kernels that take pairs apart.
_MAX_RANK = 5


def has_pairs(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an operand or a result of an equation is complex, and held as pairs."""
    return any(_is_pair(var.aval) for var in (*eqn.invars, *eqn.outvars))


def pair(real: tf.Tensor, imag: tf.Tensor) -> tf.Tensor:
    """Complex numbers from their parts, which have the same shape."""
    result = tf.raw_ops.Pack(values=[real, imag], axis=-1)
    if modes.current() is not Mode.EAGER:
        memo.of_graph().setdefault(_PARTS, {})[id(result)] = (result, (real, imag))
    return result


def parts(x: Value) -> tuple[Value, Value]:
    """The real and the imaginary parts of complex numbers."""
    if values.is_known(x):
        return x[..., 0], x[..., 1]
    if modes.current() is not Mode.EAGER:
        known = memo.of_graph().get(_PARTS, {}).get(id(x))
        if known is not None:
            return known[1]
    x = values.full(x)
    sizes = tf.TensorShape(x.shape[:-1])
    if len(sizes) < _MAX_RANK or not sizes.is_fully_defined():
        first, second = tf.raw_ops.Unpack(value=x, num=2, axis=-1)
        return first, second
    flat = move("Reshape", x, integers([sizes.num_elements(), 2]))
    first, second = (
        move("Reshape", part, integers(sizes.as_list()))
        for part in tf.raw_ops.Unpack(value=flat, num=2, axis=-1)
    )
    return first, second


def enter(x: tf.Tensor) -> tf.Tensor:
    """A tensor of complex numbers as pairs; one that was just made of its parts as these."""
    source = values.source(x)
    if source is not None and source.type == "Complex":
        return pair(*source.inputs)
    return pair(tf.math.real(x), tf.math.imag(x))


def leave(x: tf.Tensor) -> tf.Tensor:
    """The inverse of `enter`."""
    return tf.complex(*parts(x))


def split(x: tf.Tensor) -> tf.Tensor:
    """A tensor of complex numbers as pairs, for runtimes that have no such tensors."""
    source = values.source(x)
    if source is not None and source.type == "Complex":
        return tf.stack(list(source.inputs), -1)
    return tf.stack([tf.math.real(x), tf.math.imag(x)], -1)


def apply(ctx: Context, *operands: Value) -> Any:
    """The results of an equation whose rule does not know of pairs.

    Raises:
      UnsupportedError: unless the primitive moves elements, or is linear.
    """
    traits = facts(ctx.eqn.primitive.name).traits
    if not traits & (Trait.SELECTS | Trait.LINEAR):
        ctx.unsupported("it has no complex numbers", "Compute with the real and the imaginary part")
    return apply_to_parts(ctx, *operands)


def apply_to_parts(ctx: Context, *operands: Value) -> Any:
    """The results of an equation on the real, and on the imaginary parts, as pairs."""
    eqn = ctx.eqn
    real = np.dtype(np.float32)
    of_parts = jax_compat.replace_dtypes(eqn, lambda d: real if avals.is_pair(d) else d)
    fill_value = eqn.params.get("fill_value")
    both = []
    for i in range(2):
        given = [
            parts(x)[i] if _is_pair(var.aval) else x
            for x, var in zip(operands, eqn.invars, strict=True)
        ]
        part_eqn = of_parts
        if fill_value is not None:
            filled = float([np.real, np.imag][i](fill_value))
            part_eqn = of_parts.replace(params={**of_parts.params, "fill_value": filled})
        both.append(ctx.equation(part_eqn, *given))
    results = [
        pair(*_broadcast(a, b)) if _is_pair(var.aval) else a
        for a, b, var in zip(*both, eqn.outvars, strict=True)
    ]
    return results if eqn.primitive.multiple_results else results[0]


def _broadcast(real, imag):
    """Parts that one of the elementwise ops may have left smaller than the other."""
    if real.shape == imag.shape:
        return real, imag
    shape = tf.broadcast_dynamic_shape(tf.shape(real), tf.shape(imag))
    known = tf.broadcast_static_shape(real.shape, imag.shape)
    if known.is_fully_defined():
        shape = integers(known.as_list())
    return move("BroadcastTo", real, shape), move("BroadcastTo", imag, shape)


def _is_pair(aval) -> bool:
    return hasattr(aval, "dtype") and avals.is_pair(aval.dtype)
