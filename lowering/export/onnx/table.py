"""The table of ops: how each op of TensorFlow becomes nodes of ONNX."""

from collections.abc import Callable
from typing import Any

# Takes a builder, an op of TensorFlow and the values of its operands; returns the value of its
# result, or a sequence of values for several results.
Rule = Callable[..., Any]

OPS: dict[str, Rule] = {}

# The types of the ops whose rules pass on what is no single value of ONNX, or take it apart.
OF_ANY_VALUE: set[str] = set()


def op(*types: str, of_any_value: bool = False) -> Callable[[Rule], Rule]:
    """Enters a function into the table as the rule of ops of TensorFlow.

    Args:
      *types: the types of the ops, such as "MatMul".
      of_any_value: whether operands may be variables, or complex numbers in two parts.
    """

    def enter(rule: Rule) -> Rule:
        for name in types:
            assert name not in OPS, name
            OPS[name] = rule
        if of_any_value:
            OF_ANY_VALUE.update(types)
        return rule

    return enter
