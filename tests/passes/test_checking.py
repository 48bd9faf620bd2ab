"""The check between passes finds what is wrong with a jaxpr."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import jax_compat
from lowering.passes import pipeline
from tests.passes import checking
from tests.passes.programs import traced

X = np.ones((2, 3), np.float32)


def _program(x):
    return lax.scan(lambda c, y: (c + y, jnp.sin(y)), x[0], x), jnp.tanh(x).T @ x


BEFORE = traced(_program, X)


def _with(change):
    """A pass that changes the equations, of which it is given a list."""
    eqns = list(BEFORE.eqns)
    change(eqns)
    return jax_compat.with_equations(BEFORE, BEFORE.jaxpr.invars, BEFORE.jaxpr.outvars, eqns)


def _at(name, **changes):
    """Replaces the equation of a primitive by another one."""

    def change(eqns):
        (i,) = (i for i, eqn in enumerate(eqns) if eqn.primitive.name == name)
        eqns[i] = eqns[i].replace(**{k: f(eqns[i]) for k, f in changes.items()})

    return change


def _variable(shape, dtype):
    return lambda eqn: [jex_core.Var(jax.core.ShapedArray(shape, dtype))]


def _other_body(eqn):
    body = jax.make_jaxpr(lambda c, y: (c + y, jnp.sin(y)))(X[0, :2], X[0, :2])
    return {**eqn.params, "jaxpr": body}


WRONG = {
    "order": (lambda eqns: eqns.reverse(), "used before they are defined"),
    "twice": (lambda eqns: eqns.append(eqns[0]), "defined again"),
    "shape": (_at("tanh", outvars=_variable((3, 3), np.float32)), "inconsistently typed"),
    "dtype": (_at("tanh", outvars=_variable((2, 3), np.float16)), "inconsistently typed"),
    "operands": (_at("dot_general", invars=lambda eqn: eqn.invars[::-1]), "inconsistently typed"),
    "body": (_at("scan", params=_other_body), "scan"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found(case):
    change, message = WRONG[case]
    with pytest.raises((AssertionError, TypeError), match=message):
        checking.check(BEFORE, _with(change))


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_results_keep_their_types(dtype):
    other = traced(lambda x: x.astype(dtype)[:1], X)
    with pytest.raises(AssertionError):
        checking.check(traced(lambda x: x, X), other)


def test_the_pass_is_named():
    broken = pipeline.Pass("break", lambda jaxpr: _with(WRONG["twice"][0]))
    with pytest.raises(AssertionError, match="'break' makes a wrong jaxpr"):
        list(pipeline.steps((broken,), BEFORE, pipeline.Setting()))


def test_what_is_right_passes():
    checking.check(BEFORE, _with(lambda eqns: None))
    checking.check(BEFORE, _with(_at("scan", params=lambda eqn: {**eqn.params, "unroll": 2})))
