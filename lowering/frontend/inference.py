"""The symbolic shapes of the results of a TensorFlow function, from its shapes for some sizes.

TensorFlow knows of a dimension that it is unknown, but not how it depends on the dimensions of the
operands. So TensorFlow is asked for the sizes at some values of the dimension variables. If one
polynomial of degree two gives these sizes, and those at further values, it is the dimension.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from lowering import avals, jax_compat

Shapes: TypeAlias = Sequence[Sequence[Any]]

# The values of variables that polynomials are made for. They divide evenly by most numbers that
# programs divide by, so that what a function asks of its sizes is true of them.
_FIRST, _STEP = 24, 12
# Further values for which a polynomial has to be right: there, quotients leave remainders, and
# minima and maxima are of other operands.
_CHECKED = ((109, 133, 157), (1, 2, 3), (5, 1, 2), (2, 7, 1))
# More variables would take too many traces.
_MOST_VARIABLES = 3


def symbolic_shapes(
    operand_avals: Sequence[Any], shapes_for: Callable[[Sequence[Any]], Shapes | None]
) -> Shapes | None:
    """The shapes of the results of a function; None if they cannot be known.

    Args:
      operand_avals: the shapes and dtypes of the operands, of which some dimensions are symbolic.
      shapes_for: the shapes of the results for operands of known shapes; None if there are none.
    """
    dims = [d for aval in operand_avals for d in aval.shape if not isinstance(d, int)]
    names = sorted(frozenset().union(*map(jax_compat.dim_variables, dims)))
    if not 0 < len(names) <= _MOST_VARIABLES:
        return None
    scope = dims[0].scope

    def found_at(values: Sequence[int]) -> Shapes | None:
        variables = dict(zip(names, values))
        if not _fulfils_constraints(scope, variables):
            return None
        return shapes_for([_known(aval, variables) for aval in operand_avals])

    # As many points as a polynomial of degree two has coefficients, so placed that they determine
    # these.
    steps = [p for p in itertools.product(range(3), repeat=len(names)) if sum(p) <= 2]
    points = [tuple(_FIRST + _STEP * (step + i) for i, step in enumerate(p)) for p in steps]
    found = [found_at(point) for point in points]
    checked = [(p, found_at(p)) for p in (values[: len(names)] for values in _CHECKED)]
    if any(shapes is None for shapes in found) or checked[0][1] is None:
        return None
    samples = [(p, s) for p, s in [*zip(points, found, strict=True), *checked] if s is not None]
    ranks = {tuple(map(len, shapes)) for _, shapes in samples}
    if len(ranks) > 1:
        return None
    variables = [jax_compat.variable_in_scope(name, scope) for name in names]
    inferred: list[list[Any]] = []
    for i, rank in enumerate(ranks.pop()):
        sizes = [[(values, shapes[i][axis]) for values, shapes in samples] for axis in range(rank)]
        inferred.append([_polynomial(s, variables, len(points)) for s in sizes])
    return None if any(dim is None for shape in inferred for dim in shape) else inferred


def _polynomial(
    samples: Sequence[tuple[Sequence[int], int]], variables: Sequence[Any], known: int
) -> Any:
    """The polynomial with integer coefficients that gives some sizes; None if there is none.

    Args:
      samples: values of the variables, and the size for them.
      variables: the dimension variables.
      known: how many of the samples determine the coefficients.
    """
    rows = np.array([_monomials(values) for values, _ in samples], np.float64)
    sizes = np.array([size for _, size in samples])
    exact = np.linalg.solve(rows[:known], sizes[:known])
    coefficients = [round(c) for c in exact]
    if not np.array_equal(rows @ coefficients, sizes):
        return None
    terms = zip(coefficients, _monomials(variables), strict=True)
    return sum((c * monomial for c, monomial in terms if c), 0)


def _monomials(values: Sequence[Any]) -> list[Any]:
    """All products of at most two values."""
    return [
        math.prod(factors)
        for degree in range(3)
        for factors in itertools.combinations_with_replacement(values, degree)
    ]


def _known(aval: Any, variables: Mapping[str, int]) -> jax.ShapeDtypeStruct:
    """An abstract value in which variables have values."""
    shape = [avals.known_size(dim, variables) for dim in aval.shape]
    return jax.ShapeDtypeStruct(tuple(shape), aval.dtype)


def _fulfils_constraints(scope: Any, variables: Mapping[str, int]) -> bool:
    """Whether values of the variables meet the constraints of their scope."""
    for _, is_equality, difference in jax_compat.dim_constraints(scope):
        if jax_compat.dim_variables(difference) <= variables.keys():
            value = avals.known_size(difference, variables)
            if value < 0 or (is_equality and value):
                return False
    return True
