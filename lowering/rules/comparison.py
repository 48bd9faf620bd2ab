"""Comparisons."""

import jax.numpy as jnp
from jax import lax

from lowering.arrays import integers
from lowering.arrays import split_arithmetic as arithmetic
from lowering.ops import dtypes, emit
from lowering.registry import decomposition, legalization, on_key_data, rule
from lowering.rules import uint32_parts
from lowering.rules.unary import register_ops
from lowering.targets import PORTABLE
from lowering.tensors.ordering import total_order

_ORDERS = {"lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual"}

register_ops({"eq": "Equal", "ne": "NotEqual", **_ORDERS})


def _not(x):
    return emit("LogicalNot", x)


# TensorFlow's ops take no bools.
rule("lt", "lt_to", dtypes=dtypes.BOOL)(lambda ctx, x, y: emit("LogicalAnd", _not(x), y))
rule("le", "le_to", dtypes=dtypes.BOOL)(lambda ctx, x, y: emit("LogicalOr", _not(x), y))
rule("gt", dtypes=dtypes.BOOL)(lambda ctx, x, y: emit("LogicalAnd", x, _not(y)))
rule("ge", dtypes=dtypes.BOOL)(lambda ctx, x, y: emit("LogicalOr", x, _not(y)))


@legalization("eq", dtypes=dtypes.COMPLEX)
def eq_of_parts(x, y):
    return (lax.real(x) == lax.real(y)) & (lax.imag(x) == lax.imag(y))


@legalization("ne", dtypes=dtypes.COMPLEX)
def ne_of_parts(x, y):
    return (lax.real(x) != lax.real(y)) | (lax.imag(x) != lax.imag(y))


@on_key_data("eq")
def eq_of_keys(x, y, **_):
    return jnp.all(x == y, -1)


@on_key_data("ne")
def ne_of_keys(x, y, **_):
    return jnp.any(x != y, -1)


_COMPARE = {"lt": lax.lt, "le": lax.le, "gt": lax.gt, "ge": lax.ge}
for _primitive, _compare in {**_COMPARE, "lt_to": lax.lt, "le_to": lax.le}.items():

    @legalization(_primitive, dtypes=dtypes.UNSIGNED_32)
    def compare_uint32(x, y, compare=_compare, **_):
        return compare(integers.in_signed_order(x), integers.in_signed_order(y))


_ON_PARTS = {
    "eq": arithmetic.equal,
    "ne": lambda x, y: ~arithmetic.equal(x, y),
    "lt": arithmetic.less,
    "le": lambda x, y: arithmetic.less(x, y, or_equal=True),
    "gt": lambda x, y: arithmetic.less(y, x),
    "ge": lambda x, y: arithmetic.less(y, x, or_equal=True),
}
uint32_parts.register(
    {**_ON_PARTS, **{f"{name}_to": _ON_PARTS[name] for name in ("eq", "lt", "le")}},
    dtypes=dtypes.BOOL,
)


_NATURAL = {
    "lt_to": lambda x, y: (x < y) | ((x == x) & (y != y)),
    "le_to": lambda x, y: (x <= y) | (y != y),
    "eq_to": lambda x, y: (x == y) | ((x != x) & (y != y)),
}
# NaN is last and equals itself, whatever its sign, and so do zeros.
for _primitive, _compare in _NATURAL.items():
    decomposition(_primitive, target=PORTABLE, dtypes=dtypes.FLOAT)(_compare)


# In the order -NaN < -inf < ... < -0 < 0 < ... < inf < NaN, in which NaN equals itself.
for _primitive, _op in {"lt_to": "Less", "le_to": "LessEqual", "eq_to": "Equal"}.items():
    rule(_primitive)(lambda ctx, x, y, op=_op: emit(op, total_order(x), total_order(y)))
