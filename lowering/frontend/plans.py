"""How the variables in `polymorphic_shapes` follow from the sizes of arguments; see `checks`."""

import dataclasses
import functools
from collections.abc import Set
from typing import Any

from lowering import jax_compat
from lowering.frontend import solving

Dim = Any  # An int or one of JAX's symbolic dimensions.


@dataclasses.dataclass(frozen=True)
class Argument:
    """The shape of one argument, with its specification.

    Attributes:
      name: such as `args[0]['x']`.
      shape: its dimensions.
      specification: the user's, or None.
    """

    name: str
    shape: tuple[Dim, ...]
    specification: str | None

    def text(self, axis: int) -> str:
        """A dimension, as messages name it."""
        return f"{self.name}.shape[{axis}] = {self.shape[axis]}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """How dimension variables follow from the sizes of arguments, and what must be true of those.

    Attributes:
      arguments: what is said of the shapes.
      places: the argument and the axis of each symbolic dimension.
      steps: how each variable is found.
      equations: the positions in `places` that are to be compared with what was found.
      constraints: of each constraint its text, whether it is an equality, and the dimension that
        is zero, or at least zero.
      aliases: the variables in constraints that are expressions in others.
    """

    arguments: tuple[Argument, ...]
    places: list[tuple[int, int]]
    steps: list[solving.Step]
    equations: list[int]
    constraints: list[tuple[str, bool, Dim]]
    aliases: dict[str, Dim]

    def argument(self, place: int) -> Argument:
        """The argument of a symbolic dimension."""
        return self.arguments[self.places[place][0]]

    def dim(self, place: int) -> Dim:
        """A symbolic dimension."""
        return self.argument(place).shape[self.places[place][1]]

    def text(self, place: int) -> str:
        """A symbolic dimension, as messages name it."""
        return self.argument(place).text(self.places[place][1])


@functools.lru_cache(maxsize=1024)
def plan(arguments: tuple[Argument, ...], scope: Any, constraints: tuple[str, ...]) -> Plan:
    """How the sizes of arguments are checked.

    Args:
      arguments: what is said of their shapes.
      scope: JAX's scope of the dimension variables; None if there are none.
      constraints: the constraints of the scope that the user wrote.

    Raises:
      ValueError: if the shapes do not determine the variables in them, or in a constraint.
    """
    places = [
        (i, axis)
        for i, argument in enumerate(arguments)
        for axis, dim in enumerate(argument.shape)
        if not isinstance(dim, int)
    ]
    dims = [arguments[i].shape[axis] for i, axis in places]
    steps, unsolved = solving.solve(dims)
    if unsolved:
        where = ", ".join(arguments[i].text(axis) for i, axis in (places[j] for j in unsolved))
        raise ValueError(f"cannot solve for the dimension variables in {where}")
    done = {i for step in steps if step.is_equation for _, i, _ in step.terms}
    equations = [i for i in range(len(dims)) if i not in done]
    known = {step.name for step in steps}
    checked: list[tuple[str, bool, Dim]] = []
    aliases: dict[str, Dim] = {}
    # Without a symbolic dimension, the constraints are about nothing.
    for text, is_equality, difference in jax_compat.dim_constraints(scope) if known else ():
        if text not in constraints:  # JAX has derived it from another.
            continue
        aliases |= aliases_in(text, difference, known, scope)
        checked.append((text, is_equality, difference))
    return Plan(arguments, places, steps, equations, checked, aliases)


def aliases_in(text: str, difference: Dim, known: Set[str], scope: Any) -> dict[str, Dim]:
    """What the variables of a constraint that are in no shape are, by other constraints.

    Args:
      text: the constraint.
      difference: its difference, which has the variables.
      known: the variables of the shapes.
      scope: JAX's scope of all variables.

    Raises:
      ValueError: if a variable is neither in a shape nor equal to what is.
    """
    aliases = {}
    for name in sorted(jax_compat.dim_variables(difference) - known):
        aliases[name] = jax_compat.variable_in_scope(name, scope)
        if not jax_compat.dim_variables(aliases[name]) <= known:
            raise ValueError(
                f"polymorphic_constraints has {text!r}, but no shape has the variable {name}"
            )
    return aliases
