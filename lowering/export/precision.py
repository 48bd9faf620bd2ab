"""The least precise dtype that each output of a function is computed in.

A float32 output that is a sum of bfloat16 numbers is no more precise than these: they are rounded
after each step, and a sum in another order may be rounded to another number.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import ml_dtypes
import numpy as np

from lowering import narrow_formats
from lowering.export.entry import Reference
from lowering.passes.jaxprs import Jaxpr, called_jaxprs
from lowering.registry import Trait, called, has_trait, is_call

_COARSEST = np.dtype(ml_dtypes.bfloat16)


def epsilons(reference: Reference, samples: Sequence[np.ndarray]) -> list[float]:
    """For each output, the largest epsilon of the dtypes it is computed in; at most bfloat16's.

    It is 0 where nothing is rounded.

    Args:
      reference: what is computed, in JAX.
      samples: inputs of it.
    """
    arguments = reference.arguments(samples)
    jaxpr, shapes = jax.make_jaxpr(reference.fun, return_shape=True)(*arguments)
    found = map(np.float32, _of_results(jaxpr, [0.0] * len(jaxpr.jaxpr.invars)))
    tree = jax.tree_util.tree_structure(shapes)
    return list(map(float, reference.results(jax.tree_util.tree_unflatten(tree, found))))


def _of_results(jaxpr: Jaxpr, given: Sequence[float]) -> list[float]:
    """The largest epsilon of each result of a jaxpr, given those of its operands."""
    known: dict[Any, float] = dict(zip(jaxpr.invars, given, strict=True))

    def read(atom):
        return 0.0 if isinstance(atom, jex_core.Literal) else known.get(atom, 0.0)

    for eqn in jaxpr.eqns:
        operands = list(map(read, eqn.invars))
        if is_call(eqn):
            found = _of_results(*called(eqn, operands))
        else:
            found = [max([*operands, _of_equation(eqn)])] * len(eqn.outvars)
        # Integers are not rounded, however coarse the numbers are that they are computed of.
        known.update(
            (var, epsilon if jax.dtypes.issubdtype(var.aval.dtype, np.inexact) else 0.0)
            for var, epsilon in zip(eqn.outvars, found, strict=True)
            if hasattr(var.aval, "dtype")
        )
    return [read(atom) for atom in jaxpr.outvars]


def _of_equation(eqn: jex_core.JaxprEqn) -> float:
    """The largest epsilon of the dtypes that an equation rounds to."""
    if has_trait(eqn.primitive.name, Trait.SELECTS):
        return 0.0
    jaxprs = list(called_jaxprs(eqn))
    if jaxprs:
        inside = (_of_equation(inner) for jaxpr in jaxprs for inner in jaxpr.eqns)
        return max(inside, default=0.0)
    return max((_epsilon(getattr(var.aval, "dtype", None)) for var in eqn.outvars), default=0.0)


def _epsilon(dtype: Any) -> float:
    if dtype is None or not jax.dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    return float(ml_dtypes.finfo(_COARSEST if dtype in narrow_formats.FLOAT else dtype).eps)
