"""Floats of 16 bits become float32, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.legalize.promotion import has_halves, promote_halves
from lowering.passes.pipeline import optimized
from lowering.targets import ONNX, TF, Mode
from tests.passes.programs import assert_typed, primitives, traced

HALVES = ["bfloat16", "float16"]


def dtypes_of(jaxpr):
    """The dtypes of what each equation returns, without conversions."""
    return {
        str(var.aval.dtype)
        for eqn in jaxpr.eqns
        if eqn.primitive.name != "convert_element_type"
        for var in eqn.outvars
    }


def check(fun, *args, eps=0.0):
    """Compares a function with itself in float32; returns its jaxpr, promoted."""
    jaxpr = traced(fun, *args)
    promoted = promote_halves(jaxpr)
    assert [v.aval for v in promoted.jaxpr.invars] == [v.aval for v in jaxpr.jaxpr.invars]
    assert [v.aval.dtype for v in promoted.jaxpr.outvars] == [
        v.aval.dtype for v in jaxpr.jaxpr.outvars
    ]
    assert_typed(promoted)
    results = jex_core.jaxpr_as_fun(promoted)(*args)
    for result, expected in zip(results, jex_core.jaxpr_as_fun(jaxpr)(*args), strict=True):
        assert result.dtype == expected.dtype
        np.testing.assert_allclose(
            np.asarray(result, np.float32), np.asarray(expected, np.float32), rtol=eps, atol=eps
        )
    return promoted


@pytest.mark.parametrize("dtype", HALVES)
def test_conversions_stay_at_the_boundary(dtype):
    def fun(x, y):
        mean = jnp.mean(x * y, axis=1)
        return jnp.exp(mean), mean @ y

    x = jnp.linspace(-1, 1, 16, dtype=dtype).reshape(4, 4)
    promoted = check(fun, x, x + 1, eps=0.02)
    assert dtypes_of(promoted) == {"float32"}
    assert primitives(promoted).count("convert_element_type") == 4


@pytest.mark.parametrize("dtype", HALVES)
def test_conversions_to_float32_and_back_fall_away(dtype):
    x = jnp.linspace(-1, 1, 4, dtype=np.float32)
    promoted = check(lambda x: (x.astype(dtype) + 1).astype(np.float32) * 2, x, eps=0.02)
    assert "convert_element_type" not in primitives(promoted)
    assert check(lambda x: x.astype(dtype).astype(np.float32), x, eps=0.02).eqns == []


@pytest.mark.parametrize("dtype", HALVES)
def test_what_depends_on_the_bits_keeps_its_dtype(dtype):
    info = jnp.finfo(dtype)

    def fun(x):
        y = x * 3
        return (
            lax.bitcast_convert_type(y, np.int16),
            lax.nextafter(y, y + 1),
            lax.reduce_precision(y, info.nexp, 2),
        )

    promoted = check(fun, jnp.linspace(-1, 1, 4, dtype=dtype))
    kept = {eqn.primitive.name for eqn in promoted.eqns if eqn.invars[0].aval.dtype == dtype}
    assert kept == {
        "bitcast_convert_type", "nextafter", "reduce_precision", "convert_element_type",
    }  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
def test_an_exponent_is_rounded_to_the_dtype(dtype):
    """4097 is no number of 16 bits; an even exponent takes its place."""
    x, y = jnp.array([-1.0, -1.0], dtype), np.int32([4097, 3])
    promoted = check(lax.pow, x, y)
    assert dtypes_of(promoted) == {dtype}


@pytest.mark.parametrize("dtype", HALVES)
def test_bodies_keep_their_arguments(dtype):
    def fun(x):
        total, _ = lax.scan(lambda c, y: (c + y * 2, None), x[0], x)
        return lax.cond(total[0] > 0, jnp.sin, jnp.cos, total * 2)

    x = jnp.ones((3, 2), dtype)
    promoted = check(fun, x)
    (scan,) = (eqn for eqn in promoted.eqns if eqn.primitive.name == "scan")
    assert has_halves(scan.params["jaxpr"])
    body = optimized(scan.params["jaxpr"], Mode.GRAPH, frozenset(), ONNX)
    assert dtypes_of(body) == {"float32"}


@pytest.mark.parametrize("dtype", HALVES)
def test_functions_are_known_by_their_constants(dtype):
    def fun(x):
        return jax.nn.gelu(jax.nn.softmax(x)), jax.nn.gelu(x, approximate=False)

    jaxpr = traced(fun, jnp.ones((2, 3), dtype))
    found = primitives(optimized(jaxpr, Mode.GRAPH, frozenset(), ONNX))
    assert found.count("softmax") == 1
    assert found.count("gelu") == 1
    constants = [
        float(atom.val)
        for eqn in optimized(jaxpr, Mode.GRAPH, frozenset(), ONNX).eqns
        for atom in eqn.invars
        if isinstance(atom, jex_core.Literal)
    ]
    assert pytest.approx(0.044715, rel=1e-6) in constants


def test_other_programs_stay_the_same():
    jaxpr = traced(lambda x: jnp.sin(x) + 1, np.float32([1, 2]))
    assert promote_halves(jaxpr) is jaxpr
    assert not has_halves(jaxpr)
    halves = traced(lambda x: jnp.sin(x) + 1, jnp.ones(2, jnp.bfloat16))
    assert has_halves(optimized(halves, Mode.GRAPH, frozenset(), TF))
