"""Side effects of functions, which models that only compute results cannot have.

Writers of such models follow the data to an op, so one that is run for its effect alone would be
left out of the model, whose results may then be others.
"""

from collections.abc import Iterable
from typing import Any

from lowering.errors import UnsupportedError
from lowering.frontend import effects

# Ops that say something or stop the program, and have nothing to do with results.
_LEFT_OUT = ("Assert", "CheckNumerics", "Print")
# Ops that read a table.
_READING = ("LookupTableFind", "LookupTableSize", "HashTable", "AnonymousHashTable")


def check(concrete: Any, model: str) -> None:
    """Raises an UnsupportedError for an op that a function runs for its side effect.

    Ops whose results are needed are not looked at: a writer has them, or names them itself.
    Assertions and prints may be left out.

    Args:
      concrete: a concrete function of TensorFlow.
      model: what is written, as in "an ONNX model".
    """
    _check(concrete.graph, concrete.graph.outputs, model, set())


def _check(graph: Any, results: Iterable[Any], model: str, seen: set[Any]) -> None:
    """Looks at the ops of a graph, of which some results are needed, and at what it calls."""
    computed = _reached([x.op for x in results], has_order=False)
    run = [*graph.control_outputs, *(x.op for x in graph.outputs)]
    for op in _reached(run, has_order=True):
        called = _called(op)
        is_computed = op in computed
        if not called and not is_computed and _acts(op):
            raise UnsupportedError(
                f"{op.name!r} is {op.type}, whose side effect {model} cannot have"
            )
        for name in called:
            if (name, is_computed) not in seen:
                seen.add((name, is_computed))
                function = graph._get_function(name).graph
                _check(function, function.outputs if is_computed else (), model, seen)


def _reached(ops: Iterable[Any], has_order: bool) -> dict[Any, None]:
    """Ops and those that they depend on; with `has_order`, also those that only run before them."""
    left = list(ops)
    found: dict[Any, None] = {}
    while left:
        op = left.pop()
        if op not in found:
            found[op] = None
            left += [x.op for x in op.inputs]
            left += op.control_inputs if has_order else []
    return found


def _called(op: Any) -> list[str]:
    """The names of the functions that an op calls."""
    found: list[str] = []
    for attribute in op.op_def.attr:
        if attribute.type == "func":
            found.append(op.get_attr(attribute.name).name)
        elif attribute.type == "list(func)":
            found += [function.name for function in op.get_attr(attribute.name)]
    return found


def _acts(op: Any) -> bool:
    """Whether an op that calls no function has a side effect."""
    if not op.op_def.is_stateful or op.type.startswith((*_LEFT_OUT, *_READING)):
        return False
    return bool(effects.acting_in_turn([op.type]))
