"""The ways in which an equation is lowered, by how the values of its variables are represented.

`REPRESENTATIONS` is the list; the first that applies to an equation lowers it. Those that change
how operands are represented lower an equation on the changed operands, which others apply to.
"""

from collections.abc import Sequence
from typing import Any

from lowering.context import Context
from lowering.ops import values
from lowering.ops.values import Value
from lowering.registry import Rule, Trait, has_trait


class Representation:
    """A way in which values are represented."""

    def applies(self, ctx: Context, rule: Rule, operands: Sequence[Value]) -> bool:
        """Whether an equation is lowered in this way."""
        raise NotImplementedError

    def operand(self, rule: Rule, value: Value, aval: Any) -> Value:
        """An operand in this representation; by default as it is."""
        return value

    def apply(self, ctx: Context, rule: Rule, operands: Sequence[Value]) -> Any:
        """The results of an equation on operands in this representation."""
        raise NotImplementedError


class Known(Representation):
    """Values that are known at lowering time: the equation is folded."""

    def applies(self, ctx, rule, operands):
        return all(map(values.is_known, operands)) and ctx.lowering.folder.folds(ctx.eqn, operands)

    def apply(self, ctx, rule, operands):
        def run():
            return map(values.full, ctx.lowering.known_equation(ctx.eqn, operands))

        results = ctx.lowering.folder.fold(ctx.eqn, operands, run)
        return results if ctx.eqn.primitive.multiple_results else results[0]


class Decomposed(Representation):
    """Values of any kind, where the rule is written in JAX."""

    def applies(self, ctx, rule, operands):
        return rule.is_decomposition

    def apply(self, ctx, rule, operands):
        return ctx.lowering.lower(rule.fun, operands, ctx.in_avals, ctx.eqn.params)


class Tensors(Representation):
    """Tensors, and known values where the rule takes them."""

    def applies(self, ctx, rule, operands):
        return True

    def operand(self, rule, value, aval):
        dtype = getattr(aval, "dtype", None)
        if not values.is_known(value):
            return values.full(value)
        if rule.keep_constants:
            # Jaxprs that are called take known numbers as they are, and may fold them.
            return value if rule.in_storage else values.in_storage(value, dtype)
        return values.tensor(value, dtype)

    def apply(self, ctx, rule, operands):
        return rule.fun(ctx, *operands, **ctx.eqn.params)


class Broadcasts(Tensors):
    """Tensors and known values that elementwise ops broadcast."""

    def applies(self, ctx, rule, operands):
        if not has_trait(ctx.eqn.primitive.name, Trait.ELEMENTWISE):
            return False
        of_operands, of_results = (
            {len(aval.shape) for aval in values} for values in (ctx.in_avals, ctx.out_avals)
        )
        ranks = (of_operands | of_results) - {0}
        # A bitcast to a wider dtype makes a scalar of a vector, which may not be broadcast later.
        makes_scalar = bool(ranks) and 0 in of_results
        return (
            len(ranks) <= 1
            and not makes_scalar
            and max(ranks, default=0) <= ctx.target.broadcast_groups
        )

    def operand(self, rule, value, aval):
        smallest = values.smallest(value)
        if rule.keep_constants:
            smallest = values.known_again(smallest)
        return super().operand(rule, smallest, aval)


REPRESENTATIONS: Sequence[Representation] = (
    Known(),
    Decomposed(),
    Broadcasts(),
    Tensors(),
)
