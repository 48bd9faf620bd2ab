"""Words in halves, for targets whose integers are exact to fewer bits: see `arrays.halves`."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import exact, halves
from lowering.arrays import half_conversions as conversions
from lowering.arrays.exact import HALF
from lowering.ops import cast, constant, emit
from lowering.ops.dtypes import WORDS
from lowering.ops.values import fingerprint, is_known, tensor
from lowering.registry import Trait, decomposition, rule
from lowering.targets import TFJS


def elementwise(
    name: str,
    compute: Callable[..., Any],
    dtypes: Sequence[Any] = (HALF, HALF),
    traits: Trait = Trait.NONE,
) -> Any:
    """A primitive that treats all elements alike, lowered to a function in JAX; see `lower_to`.

    Args:
      name: its name.
      compute: the function.
      dtypes: the dtypes of the results.
      traits: of the primitive, besides being elementwise.
    """
    primitive = exact.elementwise(name, dtypes)
    lower_to(primitive, compute, traits)
    return primitive


def lower_to(primitive: Any, compute: Callable[..., Any], traits: Trait = Trait.NONE) -> None:
    """Lowers an elementwise primitive to what a function in JAX makes of its operands.

    Those that are known by then, such as the distance of a shift, reach it as arrays of NumPy.
    Results that it knows may be smaller than their shape. It returns a tuple of several results.
    """

    @rule(primitive.name, keep_constants=True, traits=Trait.ELEMENTWISE | traits)
    def lower(ctx, *operands):
        if all(map(is_known, operands)):
            found = _traced(*operands, compute=compute, known=(None,) * len(operands))
            return [result(x, aval) for x, aval in zip(found, ctx.out_avals, strict=True)]
        pairs = zip(operands, ctx.in_avals, strict=True)
        rest = [(x, aval) for x, aval in pairs if not is_known(x)]
        known = tuple(fingerprint(x) if is_known(x) else None for x in operands)
        operands, avals_ = zip(*rest, strict=True)
        return ctx.lower(_traced, *operands, avals=avals_, compute=compute, known=known)


def _traced(*operands, compute, known):
    rest = iter(operands)
    found = compute(*(next(rest) if x is None else _array(*x) for x in known))
    return list(found) if isinstance(found, tuple) else [found]


def _array(dtype, shape, data):
    return np.frombuffer(data, dtype).reshape(shape)


def result(x: Any, aval: Any) -> Any:
    """A known result of a rule, which may be smaller than its abstract value."""
    x = np.asarray(x, aval.dtype)
    return np.broadcast_to(x, aval.shape) if avals.is_static(aval.shape) else constant(x)


def register(
    computations: dict[str, Callable[..., Any]],
    dtypes: Sequence[Any] = (HALF, HALF),
    traits: Trait = Trait.NONE,
) -> None:
    """Registers what elementwise primitives do with words, as functions of halves.

    Args:
      computations: by the name of a primitive, a function of the pairs of halves of its operands.
      dtypes: the dtypes of what it returns: halves of words, or a single dtype.
      traits: of the primitives that compute it.
    """
    for primitive, compute in computations.items():
        own = elementwise(f"{primitive}_of_halves", _on_pairs(compute), dtypes, traits)
        decomposition(primitive, target=TFJS, dtypes=WORDS)(_of_words(own))


def _on_pairs(compute):
    return lambda *parts: compute(*zip(parts[::2], parts[1::2], strict=True))


def _of_words(own):
    def of_words(*operands, **_):
        results = own.bind(*(half for x in operands for half in halves.apart(x)))
        if len(results) == 1:
            return results[0]
        found = [halves.join(*pair) for pair in zip(results[::2], results[1::2], strict=True)]
        return found if len(found) > 1 else found[0]

    return of_words


lower_to(halves.OF_BITS, conversions.of_int32)
lower_to(halves.BITS, lambda *x: conversions.to_int32(x))


# Programs that are split may be evaluated for a target that does not split, such as `portable`.
@decomposition(halves.APART.name)
def apart(x):
    return [lax.convert_element_type(half, HALF) for half in (x >> 16, x & (halves.SIZE - 1))]


@decomposition(halves.JOIN.name)
def join(high, low):
    high, low = (lax.convert_element_type(half, halves.WORD) for half in (high, low))
    return (high << 16) | low


# Floor divisions of int32 are exact for integers of 24 bits on all backends.
_OPS = {
    exact.PRODUCT: lambda x, y: emit("Mul", x, y),
    exact.QUOTIENT: lambda x, y: tf.raw_ops.FloorDiv(x=x, y=y),
    exact.REMAINDER: lambda x, y: emit("FloorMod", x, y),
    exact.LOOK_UP: lambda index, table: _looked_up(table, index),
    exact.TO_INTEGERS: lambda x: cast(x, tf.int32),
}
for _primitive, _op in _OPS.items():
    rule(_primitive.name, traits=Trait.ELEMENTWISE)(
        lambda ctx, *operands, op=_op, **params: [op(*operands, **params)]
    )


def _looked_up(table, index):
    return emit("GatherV2", constant(table, np.int32), index, constant(0, np.int32))


@rule(exact.BITWISE.name, keep_constants=True, traits=Trait.ELEMENTWISE)
def bitwise(ctx, *parts, op):
    """Both halves at once, if both are alike."""
    x, y = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    if len(x) > 1 and _are_alike(*x) and _are_alike(*y):
        first, second = (tf.raw_ops.Pack(values=list(map(tensor, z)), axis=0) for z in (x, y))
        if first.shape.rank == second.shape.rank:
            return tf.raw_ops.Unpack(value=_bitwise(op, first, second), num=2, axis=0)
    return [_bitwise(op, tensor(a), tensor(b)) for a, b in zip(x, y, strict=True)]


def _are_alike(x, y):
    return x.shape == y.shape and (is_known(x) or None not in x.shape.as_list())


_BYTE = 256
# The exclusive or of all pairs of bytes.
_XOR = np.bitwise_xor.outer(np.arange(_BYTE), np.arange(_BYTE)).astype(np.int32).reshape(-1)


def _bitwise(op, x, y):
    """The exclusive or by a table for bytes, others from that."""
    byte = constant(_BYTE, np.int32)
    high = emit("Mul", tf.raw_ops.FloorDiv(x=x, y=byte), byte)
    high = emit("AddV2", high, tf.raw_ops.FloorDiv(x=y, y=byte))
    low = emit("AddV2", emit("Mul", emit("Sub", x, high), byte), y)
    high, low = _looked_up(_XOR, high), _looked_up(_XOR, low)
    exclusive = emit("AddV2", emit("Mul", high, byte), low)
    if op == "xor":
        return exclusive
    twice = emit("AddV2" if op == "or" else "Sub", emit("AddV2", x, y), exclusive)
    return tf.raw_ops.FloorDiv(x=twice, y=constant(2, np.int32))
