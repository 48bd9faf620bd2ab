"""Jaxprs for tests of passes, which neither make nor run a TensorFlow op."""

import collections
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

import lowering  # noqa: F401  Registers the traits of primitives.
from lowering.passes.jaxprs import called_jaxprs


def traced(fun: Callable[..., Any], *args: Any) -> jex_core.ClosedJaxpr:
    """The jaxpr of a JAX function."""
    return jax.make_jaxpr(fun)(*args)


def primitives(jaxpr: Any) -> list[str]:
    """The primitives of the equations of a jaxpr, not of those that it calls."""
    return [eqn.primitive.name for eqn in jaxpr.eqns]


def counts(jaxpr: Any) -> collections.Counter[str]:
    """How often each primitive is in a jaxpr."""
    return collections.Counter(primitives(jaxpr))


def equation(jaxpr: Any, primitive: str) -> jex_core.JaxprEqn:
    """The only equation of a primitive in a jaxpr."""
    (eqn,) = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == primitive]
    return eqn


def assert_same(before: Any, after: Any, *args: Any) -> None:
    """Checks that JAX computes the same from two jaxprs, which may have no primitives of ours."""
    expected = jex_core.jaxpr_as_fun(before)(*args)
    for x, y in zip(expected, jex_core.jaxpr_as_fun(after)(*args), strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-6)


def assert_typed(jaxpr: Any) -> None:
    """Checks that each equation, here and in what it calls, gives what its results say."""
    for eqn in jaxpr.eqns:
        for called in called_jaxprs(eqn):
            assert_typed(called)
        found, _ = eqn.primitive.abstract_eval(*(x.aval for x in eqn.invars), **eqn.params)
        given = found if eqn.primitive.multiple_results else [found]
        for aval, var in zip(given, eqn.outvars, strict=True):
            assert (aval.shape, aval.dtype) == (var.aval.shape, var.aval.dtype), eqn
