"""Every primitive that JAX lowers for the CPU is lowered or refused on purpose, and has a case."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.experimental import checkify, pallas

import lowering
from harnesses.harness import all_harnesses
from lowering import jax_compat, registry

# Primitives that JAX cannot run on the CPU, or has no public function for, and what tests them.
WITHOUT_HARNESS = {
    "call": "the rule is that of closed_call",
    "create_linear": "test_pinned_buffers",
    "custom_lin": "test_what_jax_does_not_compile_is_an_error",
    "dim_as_value": "test_values_of_dimensions",
    "pbroadcast_done": "the rule is that of psum_done",
    "pin": "test_pinned_buffers",
    "ragged_all_to_all": "test_shard_map.py",
    "relayout": "the rule is that of layout_constraint",
    "scaled_matmul": "the rule is that of scaled_matmul_wrapper",
    "scaled_matmul_wrapper": "test_scaled_matmul",
    "shape_assertion": "test_shape_assertion",
    "unpin": "test_pinned_buffers",
    "unreachable": "test_what_jax_does_not_compile_is_an_error",
}


def test_every_primitive_is_lowered_or_refused():
    names = jax_primitives()
    unknown = {name for name in names - registry.primitives() if not registry.facts(name).refusal}
    assert not sorted(unknown)


def test_nearly_all_primitives_are_lowered():
    names = jax_primitives()
    assert len(names & registry.primitives()) >= 0.95 * len(names)


def test_nothing_is_both_lowered_and_refused():
    assert not {name for name in registry.primitives() if registry.facts(name).refusal}


def test_lowered_primitives_have_harnesses():
    with jax.enable_x64(True):
        tried = {harness.primitive for harness in all_harnesses().values()}
    lowered = jax_primitives() & registry.primitives()
    assert not sorted(lowered - tried - WITHOUT_HARNESS.keys())
    assert not sorted(tried & WITHOUT_HARNESS.keys())


def test_primitives_of_pallas():
    def fun(x):
        return pallas.reciprocal(x), pallas.multiple_of(x.astype(np.int32), 2)

    x = np.array([4.0, 0.5, np.inf, -0.0], np.float32)
    with np.errstate(divide="ignore"):
        expected = 1 / x
    np.testing.assert_array_equal(run(lambda x: fun(x)[0], x), expected)
    np.testing.assert_array_equal(run(lambda x: fun(x)[1], x[:1]), [4])
    kernel = pallas.pallas_call(
        lambda x, y: None, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), interpret=True
    )
    with pytest.raises(lowering.UnsupportedError, match="Pallas"):
        run(kernel, x)


@functools.cache
def jax_primitives() -> frozenset[str]:
    """What JAX lowers for the CPU, in a process of its own, as tests add primitives to this one."""
    code = "from lowering import jax_compat; print(*jax_compat.cpu_primitives())"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    return frozenset(process.stdout.split())


def run(fun, *args, compiled=False, **options):
    converted = lowering.convert(fun, target="tf", with_gradient=False, **options)
    return tf.function(converted, autograph=False, jit_compile=compiled)(*args)


def test_scaled_matmul():
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-4, 4, (2, n, 64)).astype(jnp.float8_e4m3fn) for n in (3, 5))
    x_scale, y_scale = (rng.integers(1, 4, (2, n, 2)).astype(jnp.float8_e8m0fnu) for n in (3, 5))
    expected = lax.scaled_dot(
        x,
        y,
        lhs_scale=x_scale,
        rhs_scale=y_scale,
        dimension_numbers=(((2,), (2,)), ((0,), (0,))),
        preferred_element_type=np.float32,
    )
    actual = run(lambda: jax.nn.scaled_matmul(x, y, x_scale, y_scale))
    np.testing.assert_array_equal(actual, expected)


def test_pinned_buffers():
    pin, unpin, create = map(jax_compat.cpu_primitive, ("pin", "unpin", "create_linear"))
    x = np.arange(3, dtype=np.float32)
    aval = jax.core.ShapedArray(x.shape, x.dtype)

    def fun(x):
        # The first values of a buffer are not specified.
        buffer = unpin.bind(create.bind(ty=aval, memory_space=None))
        return unpin.bind(pin.bind(x, to=None)) + 1, buffer

    actual, buffer = run(fun, x)
    np.testing.assert_array_equal(actual, x + 1)
    assert (buffer.shape, buffer.dtype) == (x.shape, x.dtype)


@pytest.mark.parametrize("compiled", [False, True])
def test_values_of_dimensions(compiled):
    dimension_size = jax_compat.cpu_primitive("dimension_size")

    def fun(x):
        return dimension_size.bind(x, dimension=0), jnp.array(2 * x.shape[0])

    results = run(fun, np.zeros((5, 2)), polymorphic_shapes=["(n, _)"], compiled=compiled)
    assert [int(result) for result in results] == [5, 10]


def test_shape_assertion():
    shape_assertion = jax_compat.cpu_primitive("shape_assertion")

    def fun(x):
        shape_assertion.bind(x[0] > 0, x[0], error_message="{0} is not positive")
        return x + 1

    np.testing.assert_array_equal(run(fun, np.ones(2, np.float32)), [2, 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not positive"):
        run(fun, np.zeros(2, np.float32))
    run(fun, np.zeros(2, np.float32), compiled=True)  # XLA has no assertions.


def test_what_jax_does_not_compile_is_an_error():
    x = np.ones(3, np.float32)
    unreachable = jax_compat.cpu_primitive("unreachable")
    aval = jax.core.ShapedArray(x.shape, x.dtype)

    def fun(x):
        return unreachable.bind(x, out_avals=(aval,), exc_type=ValueError, message="never")

    with pytest.raises(lowering.LoweringError, match="never"):
        run(fun, x)

    @jax.custom_vjp
    def double(x):
        return 2 * x

    double.defvjp(lambda x: (double(x), None), lambda _, g: (2 * g,))
    with pytest.raises(lowering.LoweringError, match="custom_vjp"):
        run(lambda x: jax.jvp(double, (x,), (x,)), x)

    def checked(x):
        checkify.check(x.sum() > 0, "negative")
        return x

    with pytest.raises(lowering.UnsupportedError, match="checkify"):
        run(checked, x)
