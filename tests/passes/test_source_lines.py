"""Whatever a pass makes has a line and the scopes of the user's equations that it replaces."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import jax_compat
from lowering.passes import pipeline
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.floats import promote_floats
from lowering.targets import TARGETS, Mode
from tests.passes import test_index_ops, test_keepdims, test_natural, test_redundant
from tests.passes.programs import traced
from tests.passes.test_expansion import scaled

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
W = np.linspace(0, 1, 9, dtype=np.float32).reshape(3, 3)


def _gates(x, y):
    return [a + b for a, b in zip(jnp.split(x, 3, -1), jnp.split(y, 3, -1), strict=True)]


def _recurrent(x, w):
    def step(carry, row):
        carry = jnp.tanh(carry @ jnp.sin(w) + row @ jnp.cos(w))
        return carry, jax.nn.softmax(carry)

    return lax.scan(step, jnp.zeros(3), x)


def _while(x, n):
    return lax.while_loop(lambda c: c[0] < jnp.square(n), lambda c: (c[0] + 1, c[1] * n), (0.0, x))


def _branches(x):
    return lax.cond(x[0, 0] > 0, jax.nn.relu6, lambda x: jax.nn.gelu(x, approximate=False), x)


def _with_reference(x):
    ref = jax.new_ref(x)
    ref[0] = x[1] * 2
    return ref[...] + 1


PROGRAMS = {
    **{f"natural, {k}": (fun, args) for k, (fun, args, _) in test_natural.FOUND.items()},
    **{f"tidy, {k}": (fun, args) for k, (fun, args, _) in test_redundant.CASES.items()},
    **{f"rows, {k}": (fun, args) for k, (fun, args, _) in test_index_ops.TAKEN.items()},
    **{f"one hot, {k}": of for k, of in test_index_ops.ONE_HOT.items()},
    **{f"axes, {k}": (fun, (test_keepdims.X,)) for k, fun in test_keepdims.KEPT.items()},
    "transposed product": (lambda x, w: (x @ w).T, (X, W)),
    "gates": (_gates, (X, X + 1)),
    "recurrent": (_recurrent, (X, W)),
    "while": (_while, (X, np.float32(2))),
    "branches": (_branches, (X,)),
    "reference": (_with_reference, (X,)),
    "16 bits": (lambda x: jax.nn.gelu(jnp.sin(x)) + x, (X.astype(jnp.bfloat16),)),
    "random": (lambda key: jax.random.normal(key, (3, 4)) * 2, (jax.random.key(0),)),
    "a user's primitive": (scaled, (X,)),
    "map of calls": (lambda x: jax.vmap(jax.jit(jax.nn.softplus))(x), (X,)),
    "gradient": (jax.grad(lambda x: jax.nn.logsumexp(jax.nn.relu(x))), (X,)),
}


@pytest.mark.parametrize("target", ["tf", "portable", "onnx"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lines_and_scopes(name, target):
    fun, args = PROGRAMS[name]

    def within(*args):
        with jax.named_scope("mine"):
            return fun(*args)

    program, functions = pipeline.whole_program(traced(within, *args))
    optimized = pipeline.optimized(program, Mode.GRAPH, functions, TARGETS[target])
    for eqn in optimized.eqns:
        assert "test_" in jax_compat.source_line(eqn), eqn
        assert "mine" in jax_compat.name_stack(eqn).split("/"), eqn
        for body in called_jaxprs(eqn):
            # What JAX traces of its own functions has no line of the user's.
            if all(map(jax_compat.has_source, body.eqns)):
                inner = pipeline.optimized(body, Mode.GRAPH, functions, TARGETS[target])
                assert all(map(jax_compat.has_source, inner.eqns)), inner


def test_lines_are_those_of_what_is_replaced():
    def fun(x):
        y = jax.nn.relu6(x)
        z = jax.nn.softmax(jnp.sin(y))
        return z - z.mean(1, keepdims=True)

    first = fun.__code__.co_firstlineno
    jaxpr, functions = pipeline.whole_program(traced(fun, X))
    found = pipeline.optimized(jaxpr, Mode.GRAPH, functions, TARGETS["portable"])
    lines = [(eqn.primitive.name, jax_compat.source_line(eqn)) for eqn in found.eqns]
    expected = [("relu6", 1), ("sin", 2), ("softmax", 2), ("reduce_mean", 3), ("sub", 3)]
    for (name, line), (expected_name, offset) in zip(lines, expected, strict=True):
        assert name == expected_name
        assert f".py:{first + offset}:" in line


def test_promoted_equations_keep_their_lines():
    def fun(x):
        y = jnp.sin(x)
        return y, jnp.cos(y)

    first = fun.__code__.co_firstlineno
    found = promote_floats(traced(fun, X.astype(jnp.bfloat16)), TARGETS["onnx"])
    for eqn, offset in zip(found.eqns, (1, 2), strict=True):
        assert f".py:{first + offset}:" in jax_compat.source_line(eqn)
