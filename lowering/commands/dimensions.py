"""Checks texts of symbolic dimensions and of constraints on them, without JAX.

JAX reads them, but takes a second to be imported.
"""

import ast
import re
from collections.abc import Iterable, Sequence, Set

from lowering.commands.mistakes import CommandError, did_you_mean

_COMPARISON = re.compile("[><=]=")
# The kinds of nodes that an expression of sizes has; "^" is a power.
_NODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.BinOp, ast.UnaryOp),
    *(ast.Add, ast.Sub, ast.Mult, ast.BitXor, ast.USub),
)

_FUNCTIONS = ("floordiv", "max", "min", "mod", "non_negative")


def is_dimension(text: str) -> bool:
    """Whether a text is an expression of sizes and names."""
    tree = _parsed(text)
    return tree is not None and all(map(_is_of_sizes, ast.walk(tree)))


def _is_of_sizes(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
    return isinstance(node, _NODES)


def names(text: str) -> frozenset[str]:
    """The names of sizes in a dimension, or on both sides of a constraint."""
    found: set[str] = set()
    for side in _COMPARISON.split(text):
        tree = _parsed(side)
        nodes = [] if tree is None else list(ast.walk(tree))
        functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
        found |= {x.id for x in nodes if isinstance(x, ast.Name) and id(x) not in functions}
    return frozenset(found)


def check_constraints(constraints: Sequence[str], known: Set[str] | None) -> None:
    """Raises a CommandError for what is no constraint, or one on a size that is in no dimension.

    Args:
      constraints: the texts.
      known: the names in all dimensions; None if modules have these.
    """
    for text in constraints:
        sides = _COMPARISON.split(text)
        if len(sides) != 2 or not all(map(is_dimension, sides)):
            raise CommandError(
                f"--constraint {text!r} is no constraint such as 'b >= 4', with '>=', '<=' or '==' "
                "between two dimensions"
            )
    if known is None:
        return
    if constraints and not known:
        raise CommandError("--constraint is for symbolic dimensions, and no --arg has one")
    for text in constraints:
        others = [x for x in constraints if x != text]
        for name in sorted(names(text) - frozenset(known).union(*map(names, others))):
            raise CommandError(
                f"--constraint {text!r}: no --arg has the dimension {name!r}"
                f"{did_you_mean(name, known)}"
            )


def constraints_on(known: Iterable[str], constraints: Sequence[str]) -> list[str]:
    """The constraints on names, and on those that these are compared with."""
    reached, chosen = set(known), set[str]()
    while more := {x for x in constraints if x not in chosen and names(x) & reached}:
        chosen |= more
        reached.update(*map(names, more))
    return [x for x in constraints if x in chosen]


def _parsed(text: str) -> ast.Expression | None:
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError):
        return None
