"""Families of primitives: those whose rules stand in one module."""

from lowering import registry, rules  # noqa: F401  Registers the rules.
from lowering.targets import TF


def family(primitive: str) -> str:
    """The family of a primitive, such as "unary"; a primitive without a rule is its own."""
    rule = registry.lookup(primitive, TF)
    module = getattr(rule and rule.fun, "__module__", "")
    is_rule = module.startswith("lowering.rules.")
    return module.rpartition(".")[2] if is_rule else primitive.replace("-", "_")
