"""Comparisons."""

from lowering.ops import dtypes, emit
from lowering.registry import Trait, rule
from lowering.tensors.ordering import total_order

_OPS = {
    "eq": "Equal",
    "ne": "NotEqual",
    "lt": "Less",
    "le": "LessEqual",
    "gt": "Greater",
    "ge": "GreaterEqual",
}


def _comparison(op):
    def lower(ctx, x, y):
        return emit(op, x, y)

    return lower


for _primitive, _op in _OPS.items():
    rule(_primitive, traits=Trait.ELEMENTWISE)(_comparison(_op))


@rule("gt", dtypes=dtypes.BOOL)
def gt_bool(ctx, x, y):
    return emit("LogicalAnd", x, emit("LogicalNot", y))


@rule("lt", "lt_to", dtypes=dtypes.BOOL)
def lt_bool(ctx, x, y):
    return emit("LogicalAnd", emit("LogicalNot", x), y)


@rule("ge", dtypes=dtypes.BOOL)
def ge_bool(ctx, x, y):
    return emit("LogicalOr", x, emit("LogicalNot", y))


@rule("le", "le_to", dtypes=dtypes.BOOL)
def le_bool(ctx, x, y):
    return emit("LogicalOr", emit("LogicalNot", x), y)


@rule("lt_to")
def lt_to(ctx, x, y):
    """-NaN < -inf < ... < -0 < 0 < ... < inf < NaN."""
    return emit("Less", total_order(x), total_order(y))


@rule("le_to")
def le_to(ctx, x, y):
    return emit("LessEqual", total_order(x), total_order(y))


@rule("eq_to")
def eq_to(ctx, x, y):
    """Equal to the bit, so that NaN equals itself and -0 does not equal 0."""
    return emit("Equal", total_order(x), total_order(y))
