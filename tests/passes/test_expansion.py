"""Primitives that are not JAX's become what they compute, wherever they are."""

import functools

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.experimental import hijax
from jax.interpreters import ad, batching, mlir

import lowering
from lowering import convert
from lowering.passes.expansion import expand
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.pipeline import optimized
from lowering.targets import Mode
from tests.helpers import MODES, graph_of, in_mode, op_counts
from tests.passes.programs import primitives, traced

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def primitive_of(name, impl, multiple_results=False, abstract=None):
    """A primitive that is computed by a JAX function, as a user makes it."""
    primitive = jex_core.Primitive(name)
    primitive.multiple_results = multiple_results
    primitive.def_impl(impl)

    def abstract_eval(*avals, **params):
        result = jax.eval_shape(functools.partial(abstract or impl, **params), *avals)
        leaves = [jax.core.ShapedArray(x.shape, x.dtype) for x in jax.tree.leaves(result)]
        return leaves if multiple_results else leaves[0]

    primitive.def_abstract_eval(abstract_eval)
    mlir.register_lowering(primitive, mlir.lower_fun(impl, multiple_results))
    return primitive


def _scaled(x, *, factor):
    return jnp.sin(x) * factor


SCALED = primitive_of("scaled_sine", _scaled)
ad.defjvp(SCALED, lambda g, x, *, factor: g * jnp.cos(x) * factor)
batching.defvectorized(SCALED)

SPLIT = primitive_of("split_in_two", lambda x: [x[0], x[1:] * 2], multiple_results=True)


def scaled(x, factor=3.0):
    return SCALED.bind(x, factor=factor)


def assert_same(fun, *args, mode="graph", **options):
    actual = in_mode(convert(fun, **options), mode)(*map(tf.constant, args))
    expected = jax.jit(fun)(*args)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


PROGRAMS = {
    "alone": scaled,
    "integers": lambda x: scaled(x, 2),
    "several_results": lambda x: SPLIT.bind(scaled(x)),
    "in_a_scan": lambda x: lax.scan(lambda c, y: (scaled(c) + y, scaled(y)), x[0], x),
    "in_a_while": lambda x: lax.fori_loop(0, 3, lambda i, y: scaled(y), x),
    "in_a_cond": lambda x: lax.cond(x[0, 0] > 0, scaled, lambda x: x, x),
    "in_a_jit": lambda x: jax.jit(scaled)(jax.checkpoint(scaled)(x)),
    "mapped": jax.vmap(scaled),
    "differentiated": jax.grad(lambda x: scaled(x).sum()),
    "of_a_constant": lambda x: x + scaled(np.float32(2)),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_as_jax(name, mode):
    assert_same(PROGRAMS[name], X, mode=mode)


def test_gradients_of_tensorflow():
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(convert(scaled)(x) ** 2)
    expected = jax.grad(lambda x: (scaled(x) ** 2).sum())(X)
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-5)


def test_saved(tmp_path):
    module = tf.Module()
    spec = [tf.TensorSpec(X.shape, tf.float32)]
    module.f = tf.function(convert(scaled), autograph=False, input_signature=spec)
    tf.saved_model.save(module, tmp_path)
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).f(X), scaled(X), rtol=1e-6)


def test_symbolic_shapes():
    fun_tf = convert(scaled, polymorphic_shapes=["(b, _)"])
    function = tf.function(fun_tf, autograph=False, input_signature=[tf.TensorSpec([None, 3])])
    for size in (1, 4):
        x = np.full((size, 3), 0.5, np.float32)
        np.testing.assert_allclose(function(x), scaled(x), rtol=1e-6)


def test_passes_see_through():
    jaxpr = optimized(expand(traced(lambda x: scaled(scaled(x)), X)), Mode.GRAPH, frozenset())
    assert primitives(jaxpr) == ["sin", "mul"] * 2
    matmul = primitive_of("times_matrix", lambda x, w: x @ w)
    w = np.ones((3, 3), np.float32)

    def loop(x, w):  # The product does not depend on what is carried: one for all steps.
        return lax.scan(lambda c, y: (c + matmul.bind(y, w), None), jnp.zeros(3), x)[0]

    jaxpr = optimized(expand(traced(loop, X, w)), Mode.GRAPH, frozenset())
    body = next(eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan").params["jaxpr"]
    assert "expansion" in primitives(body)
    assert_same(loop, X, w)


def test_what_is_used_often_is_one_function():
    def long(x):
        for _ in range(8):
            x = jnp.sin(x) + 1
        return x

    primitive = primitive_of("long_foreign", long)
    graph = graph_of(lambda x: primitive.bind(primitive.bind(primitive.bind(x))), X)
    assert op_counts(graph)["Sin"] == 8


def test_a_jaxpr_without_them_stays_the_same_object():
    jaxpr = traced(lambda x: lax.fori_loop(0, 3, lambda i, y: jnp.sin(y), x), X)
    assert expand(jaxpr) is jaxpr


def test_shared_jaxprs_stay_shared():
    @jax.jit
    def inner(x):
        return scaled(x)

    jaxpr = expand(traced(lambda x: inner(inner(x)), X))
    first, second = (next(called_jaxprs(eqn)) for eqn in jaxpr.eqns)
    assert first is second and primitives(first) == ["expansion"]


@pytest.mark.parametrize("enabled", [False, True])
def test_types_are_those_of_the_users_setting(enabled):
    primitive = primitive_of("with_default_types", lambda x: x + jnp.arange(3.0))
    with jax.enable_x64(enabled):
        x = np.ones(3, np.float64 if enabled else np.float32)
        result = convert(primitive.bind)(x)
        assert result.dtype == (tf.float64 if enabled else tf.float32)
        assert_same(primitive.bind, x)


@pytest.mark.parametrize("enabled", [False, True])
def test_a_primitive_that_expands_itself(enabled):
    """Those of JAX do, too: since 0.12, `jnp.nonzero` and what is made of it."""
    # Its name differs from version to version of JAX.
    base = getattr(hijax, "HiPrim", None) or hijax.VJPHiPrimitive

    class Places(base):
        def __init__(self, aval):
            self.in_avals = (aval,)
            self.out_aval = jax.typeof(jnp.zeros(aval.shape, int))
            self.params = {}
            super().__init__()

        def expand(self, x):
            return jnp.cumsum(x > 0, axis=0) // 2

    def fun(x):
        return Places(jax.typeof(x))(x), jnp.nonzero(x > 0, size=2)

    with jax.enable_x64(enabled):
        assert_same(fun, X)
        wide = "int64" in str(expand(jax.make_jaxpr(fun)(X)))
        assert wide == enabled
    if not enabled:
        lowering.export.to_tflite(fun, (X,))


def test_a_part_of_a_program_with_64_bits():
    primitive = primitive_of("with_wide_types", lambda x: x + jnp.arange(3.0))

    def fun(x):
        with jax.enable_x64(True):
            return primitive.bind(x.astype(np.float64)).astype(np.float32)

    assert_same(fun, np.ones(3, np.float32))


def test_settings_of_the_equation():
    def noise(words):
        return jax.random.normal(jax.random.wrap_key_data(words), (5,))

    primitive = primitive_of("noise", noise)
    words = np.uint32([0, 7])
    for partitionable in (False, True):
        with jax.threefry_partitionable(partitionable):
            assert_same(primitive.bind, words)


def test_parameters_that_are_equal_but_of_different_types():
    """JAX itself takes one for the other."""
    primitive = primitive_of(
        "asks_for_the_type", lambda x, *, flag: x + (1 if flag is True else 2 if flag == 1 else 3)
    )
    results = convert(lambda x: [primitive.bind(x, flag=flag) for flag in (True, 1, 1.0, 0)])(X)
    for result, shift in zip(results, (1, 2, 2, 3), strict=True):
        np.testing.assert_array_equal(result, X + np.float32(shift))


def test_jaxprs_and_trees_as_parameters():
    def call(x, *, jaxpr, tree):
        return jex_core.jaxpr_as_fun(jaxpr)(jax.tree.unflatten(tree, [x])["x"])[0]

    primitive = primitive_of("calls_a_jaxpr", call)
    params = {"jaxpr": jax.make_jaxpr(scaled)(X), "tree": jax.tree.structure({"x": 0})}
    assert_same(lambda x: primitive.bind(x, **params), X)


def test_bodies_that_are_mapped_again():
    """Inside of `shard_map`, and of a loop there, JAX maps what has been expanded."""
    mesh = jax.sharding.Mesh(jax.devices()[:2], ("i",))
    spec = jax.sharding.PartitionSpec("i")

    @functools.partial(jax.shard_map, mesh=mesh, in_specs=spec, out_specs=spec)
    def fun(x):
        return lax.fori_loop(0, 2, lambda i, y: scaled(y), scaled(x))

    assert_same(fun, X)


def test_one_that_is_computed_by_smaller_ones_of_its_kind():
    def power(x, *, n):
        return x if n == 0 else primitive.bind(x * 2, n=n - 1)

    primitive = primitive_of("power_of_two", power, abstract=lambda x, n: x)
    assert_same(lambda x: primitive.bind(x, n=5), X)


def test_the_function_of_its_mlir_lowering():
    """JAX compiles it, so its `impl` does not say what it computes."""
    primitive = jex_core.Primitive("only_lowered")
    primitive.def_abstract_eval(lambda x: x)
    primitive.def_impl(lambda x: np.sin(x))
    mlir.register_lowering(primitive, mlir.lower_fun(jnp.sin, multiple_results=False))
    assert_same(primitive.bind, X)


def test_scopes_are_those_of_the_equation():
    def fun(x):
        with jax.named_scope("outer"):
            return scaled(x)

    (op,) = (op for op in graph_of(fun, X).get_operations() if op.type == "Sin")
    assert op.name == "outer/Sin"


# Errors.


def message_of(primitive, fun=None):
    with pytest.raises(lowering.UnsupportedError) as caught:
        convert(fun or (lambda x: primitive.bind(x)))(X)
    message = str(caught.value)
    assert message.startswith(f"{primitive.name}(f32[2,3])")
    assert "test_expansion.py" in message
    return message


def test_an_impl_that_cannot_be_traced():
    primitive = jex_core.Primitive("of_numpy")
    primitive.def_abstract_eval(lambda x: x)
    primitive.def_impl(lambda x: np.sin(np.asarray(x)))
    message = message_of(primitive)
    assert "its impl cannot be traced: TracerArrayConversionError" in message
    assert "lowering.rule or lowering.decomposition" in message


def test_an_impl_of_another_type():
    primitive = primitive_of("of_another_type", lambda x: x > 0, abstract=lambda x: x)
    assert "it returns bool[2,3] where f32[2,3] were promised" in message_of(primitive)


@pytest.mark.parametrize("has_impl", [False, True])
def test_code_for_compilers_alone(has_impl):
    primitive = jex_core.Primitive("of_mlir")
    primitive.def_abstract_eval(lambda x: x)
    if has_impl:  # That of all primitives of JAX: it compiles and runs the primitive.
        primitive.def_impl(lax.sin_p.impl.__class__(lax.sin_p.impl.func, primitive))
    mlir.register_lowering(primitive, lambda ctx, x: [x])
    assert "it has no impl in JAX that could be traced" in message_of(primitive)


def test_an_impl_that_is_the_primitive():
    primitive = jex_core.Primitive("endless")
    primitive.def_abstract_eval(lambda x: x)
    primitive.def_impl(lambda x: primitive.bind(x))
    assert "its impl is the primitive itself" in message_of(primitive)


def test_an_impl_without_an_end():
    primitive = jex_core.Primitive("growing")
    primitive.def_abstract_eval(lambda x, *, n: x)
    primitive.def_impl(lambda x, *, n: primitive.bind(x, n=n + 1))
    message = message_of(primitive, lambda x: primitive.bind(x, n=0))
    assert "without an end" in message


def test_one_inside_of_another_is_named():
    inner = jex_core.Primitive("inner_without_impl")
    inner.def_abstract_eval(lambda x: x)
    outer = primitive_of("outer_with_impl", lambda x: inner.bind(x) * 2, abstract=lambda x: x)
    assert "it has no impl" in message_of(inner, lambda x: outer.bind(x))


def test_what_is_never_run_is_no_error():
    primitive = jex_core.Primitive("for_another_platform")
    primitive.def_abstract_eval(lambda x: x)

    def fun(x):
        return lax.platform_dependent(x, cpu=jnp.sin, tpu=primitive.bind)

    np.testing.assert_allclose(convert(fun)(X), np.sin(X), rtol=1e-6)


def test_the_name_of_a_primitive_of_jax():
    primitive = primitive_of("square", lambda x: x + 1)
    assert_same(primitive.bind, X)
    primitive = primitive_of("softmax", lambda x: x + 1)
    assert_same(primitive.bind, X)
    primitive = jex_core.Primitive("sqrt")
    primitive.def_abstract_eval(lambda x: x)
    message = message_of(primitive)
    assert "it is not the primitive that is known by this name, and it has no impl" in message
    assert "Give it a name of its own" in message
