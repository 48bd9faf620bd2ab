"""Solves for dimension variables, given the sizes of arguments.

A specification such as "(a + 2*b, a)" is a system of equations: each dimension is an expression
over variables, and its size is known when the function is called. `solve` finds out, without any
size, how the variables follow from the sizes. A solution is a list of steps, each of which divides
a combination of sizes and of earlier variables. Each division has to be exact; `checks` sees to all
other conditions on the sizes.
"""

import dataclasses
import fractions
import math
from collections.abc import Mapping, Sequence
from typing import Any

from lowering import jax_compat

Dim = Any  # An int or one of JAX's symbolic dimensions.


@dataclasses.dataclass(frozen=True)
class Step:
    """How one variable is found: the sum of `weight * (size - rest)`, divided by `divisor`.

    Attributes:
      name: the variable.
      terms: for each equation that is used its weight, its position, and the rest, which depends
        on variables of earlier steps only.
      divisor: a positive int; or a dimension in variables of earlier steps, which may be zero.
    """

    name: str
    terms: tuple[tuple[int, int, Dim], ...]
    divisor: Dim

    @property
    def is_equation(self) -> bool:
        """Whether the equation that it uses is true if the division is exact."""
        return len(self.terms) == 1 and abs(self.terms[0][0]) == 1


def solve(dims: Sequence[Dim]) -> tuple[list[Step], list[int]]:
    """How the variables in dimensions follow from their sizes.

    Variables are found one after the other, where a dimension is linear in the only variable that
    is not known yet. Where there is none, linear equations with constant coefficients are solved
    together.

    Args:
      dims: the symbolic dimensions.

    Returns:
      The steps, in order, and the positions of the dimensions whose variables cannot be found.
    """
    steps: list[Step] = []
    unknown = frozenset[str]().union(*map(jax_compat.dim_variables, dims))
    # Plain variables first: they need no arithmetic.
    pending = sorted(range(len(dims)), key=lambda i: len(str(dims[i])))
    while pending:
        found = _single(dims, pending, unknown) or _together(dims, pending, unknown)
        if not found:
            return steps, pending
        steps += found
        unknown -= {step.name for step in found}
        pending = [i for i in pending if jax_compat.dim_variables(dims[i]) & unknown]
    return steps, []


def _single(dims: Sequence[Dim], pending: Sequence[int], unknown: frozenset[str]) -> list[Step]:
    """A step for a variable that is the only unknown one of a dimension; none if there is none."""
    candidates = []
    for i in pending:
        if len(jax_compat.dim_variables(dims[i]) & unknown) != 1:
            continue
        linear = jax_compat.linear_in(dims[i], unknown)
        if linear is not None:
            ((name, divisor),) = linear[0].items()
            sign = -1 if isinstance(divisor, int) and divisor < 0 else 1
            step = Step(name, ((sign, i, linear[1]),), sign * divisor)
            if isinstance(divisor, int):
                return [step]
            candidates.append(step)
    # A coefficient that depends on sizes may be zero; a constant one never is.
    return candidates[:1]


def _together(dims: Sequence[Dim], pending: Sequence[int], unknown: frozenset[str]) -> list[Step]:
    """Steps for the variables that several equations together determine (Gauss-Jordan)."""
    rows: list[tuple[dict[str, fractions.Fraction], dict[int, fractions.Fraction]]] = []
    rests: dict[int, Dim] = {}
    for i in pending:
        linear = jax_compat.linear_in(dims[i], unknown)
        if linear is None or not all(isinstance(k, int) for k in linear[0].values()):
            continue
        rests[i] = linear[1]
        # On the left the coefficients of variables, on the right the weights of equations.
        left = {name: fractions.Fraction(k) for name, k in linear[0].items()}
        right = {i: fractions.Fraction(1)}
        for pivot_left, pivot_right in rows:
            _eliminate(left, right, pivot_left, pivot_right)
        if not left:
            continue
        scale = left[min(left)]
        left = {name: k / scale for name, k in left.items()}
        right = {j: k / scale for j, k in right.items()}
        for other_left, other_right in rows:
            _eliminate(other_left, other_right, left, right)
        rows.append((left, right))
    steps = []
    for left, right in rows:
        if len(left) == 1:
            divisor = math.lcm(*(weight.denominator for weight in right.values()))
            terms = tuple((int(w * divisor), i, rests[i]) for i, w in sorted(right.items()))
            steps.append(Step(min(left), terms, divisor))
    return steps


def _eliminate(
    left: dict[str, fractions.Fraction],
    right: dict[int, fractions.Fraction],
    pivot_left: Mapping[str, fractions.Fraction],
    pivot_right: Mapping[int, fractions.Fraction],
) -> None:
    """Takes the first variable of a pivot row, whose coefficient is one, out of another row."""
    factor = left.get(min(pivot_left), fractions.Fraction(0))
    if factor:
        _subtract(left, factor, pivot_left)
        _subtract(right, factor, pivot_right)


def _subtract(
    values: dict[Any, fractions.Fraction],
    factor: fractions.Fraction,
    others: Mapping[Any, fractions.Fraction],
) -> None:
    for key, value in others.items():
        values[key] = values.get(key, fractions.Fraction(0)) - factor * value
        if not values[key]:
            del values[key]
