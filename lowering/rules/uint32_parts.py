"""uint32 in 16-bit parts (`arrays.uint32_parts`), where integers are exact to 24 bits only."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import exact, uint32_parts
from lowering.arrays import split_conversions as conversions
from lowering.arrays.uint32 import INT32, UINT32
from lowering.ops import cast, constant, emit
from lowering.ops.dtypes import UNSIGNED_32
from lowering.ops.values import fingerprint, is_known, tensor
from lowering.registry import Trait, decomposition, rule
from lowering.targets import TFJS


def elementwise(
    name: str,
    compute: Callable[..., Any],
    dtypes: Sequence[Any] = (INT32, INT32),
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
    dtypes: Sequence[Any] = (INT32, INT32),
    traits: Trait = Trait.NONE,
) -> None:
    """Registers what elementwise primitives do with uint32, as functions of their parts.

    Args:
      computations: by the name of a primitive, a function of the parts of each operand.
      dtypes: the dtypes of what it returns: the parts of uint32, or a single dtype.
      traits: of the primitives that compute it.
    """
    for primitive, compute in computations.items():
        own = elementwise(f"{primitive}_of_parts", _on_parts(compute), dtypes, traits)
        decomposition(primitive, target=TFJS, dtypes=UNSIGNED_32)(_on_uint32(own))


def _on_parts(compute):
    return lambda *parts: compute(*zip(parts[::2], parts[1::2], strict=True))


def _on_uint32(own):
    def on_uint32(*operands, **_):
        results = own.bind(*(part for x in operands for part in uint32_parts.split(x)))
        if len(results) == 1:
            return results[0]
        found = [
            uint32_parts.join(*parts) for parts in zip(results[::2], results[1::2], strict=True)
        ]
        return found if len(found) > 1 else found[0]

    return on_uint32


lower_to(uint32_parts.OF_INT32, conversions.of_int32)
lower_to(uint32_parts.TO_INT32, lambda *x: conversions.to_int32(x))


# Programs that are split may be evaluated for a target that does not split, such as `portable`.
@decomposition(uint32_parts.SPLIT.name)
def split(x):
    parts = x >> 16, x & (uint32_parts.BASE - 1)
    return [lax.convert_element_type(part, INT32) for part in parts]


@decomposition(uint32_parts.JOIN.name)
def join(high, low):
    high, low = (lax.convert_element_type(part, UINT32) for part in (high, low))
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
    """The upper and the lower 16 bits at once, if their shapes allow it."""
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
