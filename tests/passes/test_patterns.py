"""Groups of equations are found by example."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.fusion.exact import PATTERNS, SEARCHES, mark_operands
from lowering.passes.fusion.patterns import Pattern, fuse
from lowering.passes.inlining import inline_calls
from tests.passes.programs import assert_same, equation, primitives, traced

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)
FLOATS = jax.ShapeDtypeStruct((2, 3), np.float32)


def _hard_swish(x):
    return x * jnp.minimum(jnp.maximum(x + 3, 0), 6) / 6


# The replacement is another way to write it, so that JAX can check it.
HARD_SWISH = Pattern(_hard_swish, lambda x: x * jnp.clip(x / 6 + 0.5, 0, 1), args=(FLOATS,))


def fused(fun, *args, patterns=(HARD_SWISH,)):
    before = inline_calls(traced(fun, *args), frozenset())
    return before, fuse(before, patterns, {})


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4)])
def test_an_example_is_found_in_any_shape_and_dtype(shape, dtype):
    x = np.full(shape, 0.75, dtype)
    before, after = fused(lambda x: jnp.exp(_hard_swish(jnp.sin(x))), x)
    assert primitives(before) != primitives(after)
    assert "clamp" in primitives(after) or "min" in primitives(after)
    expected = jax.jit(lambda x: jnp.exp(_hard_swish(jnp.sin(x))))(x)
    (actual,) = jax.extend.core.jaxpr_as_fun(after)(x)
    np.testing.assert_allclose(actual, expected, rtol=1e-2)


def test_operands_may_be_exchanged():
    def exchanged(x):
        return jnp.minimum(6, jnp.maximum(0, 3 + x)) * x / 6

    before, after = fused(exchanged, X)
    assert len(after.eqns) != len(before.eqns) or primitives(after) != primitives(before)
    assert_same(before, after, X)


def test_other_constants_are_no_match():
    def other(x):
        return x * jnp.minimum(jnp.maximum(x + 3, 0), 5) / 6

    before, after = fused(other, X)
    assert after is before


def test_a_group_that_others_need_a_part_of_stays():
    def needed(x):
        raised = x + 3
        return x * jnp.minimum(jnp.maximum(raised, 0), 6) / 6, raised

    before, after = fused(needed, X)
    assert after is before


def test_a_condition_refuses_a_match():
    pattern = Pattern(
        _hard_swish, HARD_SWISH.replacement, args=(FLOATS,), when=lambda x: x.dtype == np.float16
    )
    before, after = fused(_hard_swish, X, patterns=(pattern,))
    assert after is before


def test_a_scalar_argument_may_be_a_literal():
    def scaled(x, factor):
        return jnp.tanh(x * factor) / factor

    pattern = Pattern(
        scaled,
        lambda x, factor: jnp.sinh(x) * factor,
        args=(FLOATS, jax.ShapeDtypeStruct((), np.float32)),
    )
    _, after = fused(lambda x: jnp.tanh(x * 2.5) / 2.5, X, patterns=(pattern,))
    assert primitives(after) == ["sinh", "mul"]
    _, after = fused(lambda x: jnp.tanh(x * 2.5) / 2, X, patterns=(pattern,))
    assert primitives(after) == ["mul", "tanh", "div"]


def test_symbolic_shapes():
    shape = jax.export.symbolic_shape("b, 3")
    x = jax.ShapeDtypeStruct(shape, np.float32)
    _, after = fused(jax.nn.softmax, x, patterns=PATTERNS)
    assert primitives(after) == ["softmax"]


@pytest.mark.parametrize(
    "softmax",
    [
        jax.nn.softmax,
        lambda x: (e := jnp.exp(x - x.max(-1, keepdims=True))) / e.sum(-1, keepdims=True),
        lambda x: (
            (e := jnp.exp(x - lax.stop_gradient(x.max(-1, keepdims=True))))
            / e.sum(-1, keepdims=True)
        ),
    ],
)
def test_ways_to_write_a_softmax(softmax):
    _, after = fused(softmax, X, patterns=PATTERNS)
    assert primitives(after) == ["softmax"]


def test_searches_by_hand():
    before = traced(lambda x, y: (x @ y).T, X, X.T)
    after = fuse(before, (), SEARCHES)
    assert primitives(after) == ["dot_general"]
    assert equation(after, "dot_general").params["permutation"] == (1, 0)


@pytest.mark.parametrize(("low", "is_marked"), [(0.0, True), (-0.0, False), (1.0, False)])
def test_a_maximum_over_windows_of_a_rectifier(low, is_marked):
    def fun(x):
        y = lax.max(x, jnp.float32(low))
        return lax.reduce_window(y, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID")

    after = mark_operands(traced(fun, X))
    assert ("of_rectifier" in equation(after, "reduce_window_max").params) == is_marked
