"""The table of ops: how each op of TensorFlow becomes nodes of ONNX."""

from collections.abc import Callable
from typing import Any

# From a builder, an op of TensorFlow and the values of its operands to the values of its results: a
# value, or a sequence of them if there are several.
Rule = Callable[..., Any]

OPS: dict[str, Rule] = {}


def op(*types: str) -> Callable[[Rule], Rule]:
    """Enters a function into the table as the rule of ops of TensorFlow.

    Args:
      *types: the types of the ops, such as "MatMul".
    """

    def enter(rule: Rule) -> Rule:
        for name in types:
            assert name not in OPS, name
            OPS[name] = rule
        return rule

    return enter
