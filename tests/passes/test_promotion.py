"""Floats of 16 bits become float32, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes import pipeline
from lowering.passes.fusion.half_floats import fuse_half_floats
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.floats import promote_floats
from lowering.passes.legalize.keys import split_keys
from lowering.targets import ONNX, PORTABLE, TF, TFJS, Mode
from tests.passes.programs import assert_typed, counts, primitives, traced

HALVES = ["bfloat16", "float16"]


def dtypes_in(jaxpr):
    """The names of the dtypes of all variables, here and in what is called."""
    found = {str(var.aval.dtype) for eqn in jaxpr.eqns for var in (*eqn.invars, *eqn.outvars)}
    return found.union(*(dtypes_in(x) for eqn in jaxpr.eqns for x in called_jaxprs(eqn)))


def check(fun, *args, eps=0.0):
    """Compares a function with its promoted jaxpr, which is returned."""
    jaxpr = traced(fun, *args)
    promoted = promote_floats(jaxpr, ONNX)
    assert_typed(promoted)
    assert dtypes_in(promoted).isdisjoint(HALVES)
    given = [x.astype(np.float32) if x.dtype in map(jnp.dtype, HALVES) else x for x in args]
    results = jex_core.jaxpr_as_fun(promoted)(*given)
    for result, expected in zip(results, jex_core.jaxpr_as_fun(jaxpr)(*args), strict=True):
        np.testing.assert_allclose(
            np.asarray(result, np.float32), np.asarray(expected, np.float32), rtol=eps, atol=eps
        )
    return promoted


@pytest.mark.parametrize("dtype", HALVES)
def test_arguments_and_results_are_float32(dtype):
    def fun(x, y):
        mean = jnp.mean(x * y, axis=1)
        return jnp.exp(mean), mean @ y

    x = jnp.linspace(-1, 1, 16, dtype=dtype).reshape(4, 4)
    promoted = check(fun, x, x + 1, eps=0.02)
    assert "convert_element_type" not in primitives(promoted)


@pytest.mark.parametrize("dtype", HALVES)
def test_conversions_to_float32_and_back_fall_away(dtype):
    x = jnp.linspace(-1, 1, 4, dtype=np.float32)
    promoted = check(lambda x: (x.astype(dtype) + 1).astype(np.float32) * 2, x, eps=0.02)
    assert primitives(promoted) == ["add", "mul"]
    assert check(lambda x: x.astype(dtype).astype(np.float32), x, eps=0.02).eqns == []


@pytest.mark.parametrize("dtype", HALVES)
def test_other_conversions_stay(dtype):
    def fun(x, n):
        return x.astype(np.int32), n.astype(dtype), x > 0

    promoted = check(fun, jnp.array([-1.5, 2.5], dtype), np.int32([1, 2]))
    assert primitives(promoted) == ["convert_element_type"] * 2 + ["gt"]


@pytest.mark.parametrize("dtype", HALVES)
def test_what_depends_on_the_bits_is_rounded(dtype):
    info = jnp.finfo(dtype)

    def fun(x):
        y = x * 3
        return (
            lax.bitcast_convert_type(y, np.int16),
            lax.nextafter(y, y + 1),
            lax.reduce_precision(y, info.nexp, 2),
            lax.reduce_precision(y, info.nexp, info.nmant),
        )

    jaxpr = traced(fun, jnp.linspace(-1, 1, 4, dtype=dtype))
    promoted = promote_floats(jaxpr, ONNX)
    assert_typed(promoted)
    assert dtypes_in(promoted).isdisjoint(HALVES)
    assert counts(promoted)["fit"] == 5


@pytest.mark.parametrize("dtype", HALVES)
def test_an_exponent_is_rounded_to_the_dtype(dtype):
    """4097 is no number of 16 bits; an even exponent takes its place."""
    x, y = jnp.array([-1.0, -1.0], dtype), np.int32([4097, 3])
    assert "reduce_precision" in primitives(check(lax.pow, x, y))


@pytest.mark.parametrize("dtype", HALVES)
def test_loops_branches_and_calls_carry_float32(dtype):
    @jax.jit
    def double(x):
        return x * 2

    def fun(x):
        total, rows = lax.scan(lambda c, y: (c + y, c), x[0], double(x))
        final = lax.while_loop(lambda c: c[0] < 40, lambda c: c * 3, total)
        return lax.cond(final[0] > 0, jnp.sin, jnp.cos, final), rows

    check(fun, jnp.ones((3, 2), dtype), eps=0.02)


@pytest.mark.parametrize("dtype", HALVES)
def test_computations_of_reductions_stay_monoids(dtype):
    def fun(x):
        return lax.reduce(x, x[0], lambda a, b: a + b, (0,)), x.at[np.array([0, 0])].add(x[1])

    check(fun, jnp.ones(3, dtype))


@pytest.mark.parametrize("dtype", HALVES)
def test_large_constants_are_kept_in_16_bits(dtype):
    small, large = jnp.ones(4, dtype), jnp.ones((4, 4096), dtype)
    promoted = promote_floats(traced(lambda x: (x + small) @ large, small), ONNX)
    assert [str(x.dtype) for x in promoted.consts] == ["float32", dtype]
    assert primitives(promoted) == ["widen", "add", "dot_general"]
    # Nothing converts what is only returned.
    assert [x.dtype for x in promote_floats(traced(lambda: large), ONNX).consts] == [np.float32]


@pytest.mark.parametrize("dtype", HALVES)
def test_functions_are_known_by_their_constants(dtype):
    def fun(x):
        return jax.nn.gelu(jax.nn.softmax(x)), jax.nn.gelu(x, approximate=False)

    whole, _ = pipeline.whole_program(traced(fun, jnp.ones((2, 3), dtype)), ONNX)
    found = pipeline.optimized(whole, Mode.GRAPH, frozenset(), ONNX)
    assert counts(found)["softmax"] == 1
    assert counts(found)["gelu"] == 1
    constants = [
        float(atom.val)
        for eqn in found.eqns
        for atom in eqn.invars
        if isinstance(atom, jex_core.Literal)
    ]
    assert pytest.approx(0.044715, rel=1e-6) in constants


@pytest.mark.parametrize("dtype", HALVES)
def test_functions_are_found_in_what_is_called(dtype):
    def fun(x):
        def step(x, _):
            return jax.checkpoint(lambda x: jax.nn.gelu(x, approximate=False))(x), None

        return lax.scan(step, x, None, 3)[0]

    fused = fuse_half_floats(traced(fun, jnp.ones((2, 3), dtype)))
    assert "gelu" in str(fused)


@pytest.mark.parametrize("dtype", HALVES)
def test_random_numbers_are_drawn_in_their_dtype(dtype):
    def fun(key, alpha):
        return jax.random.gamma(key, alpha, dtype=dtype)

    jaxpr = traced(fun, jax.random.key(0), jnp.ones((2,), dtype))
    assert "uint16" in dtypes_in(promote_floats(split_keys(jaxpr, ONNX), ONNX))
    whole, _ = pipeline.whole_program(jaxpr, TFJS)
    assert dtypes_in(whole).isdisjoint([*HALVES, "uint16", "uint32"])


def test_other_programs_stay_the_same():
    jaxpr = traced(lambda x: jnp.sin(x) + 1, np.float32([1, 2]))
    assert promote_floats(jaxpr, ONNX) is jaxpr
    assert fuse_half_floats(jaxpr) is jaxpr
    unchanged = traced(lambda x: jnp.sin(x) + 1, jnp.ones(2, jnp.bfloat16))
    assert fuse_half_floats(unchanged) is unchanged
    for target in (TF, PORTABLE):
        assert promote_floats(unchanged, target) is unchanged
