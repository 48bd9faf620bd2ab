"""The walk over a jaxpr: calls, scopes, dead code, constants and decompositions."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import convert, registry
from tests.core.identities import identity_primitive
from tests.helpers import graph_of, op_types


def long_body(x):
    for _ in range(20):
        x = jnp.sin(x) + 1
    return x


def test_a_body_that_is_called_often_becomes_one_function():
    body = jax.jit(long_body)

    def fun(x):
        return body(body(body(x)))

    graph = graph_of(fun, np.float32(1))
    calls = [op for op in graph.get_operations() if "PartitionedCall" in op.type]
    assert len(calls) == 3
    assert len({op.get_attr("f").name for op in calls}) == 1
    assert "Sin" not in op_types(graph)
    x = np.float32(0.5)
    np.testing.assert_allclose(convert(fun)(x), fun(x), rtol=1e-6)


def test_a_body_that_is_called_once_is_lowered_in_place():
    graph = graph_of(lambda x: jax.jit(long_body)(x), np.float32(1))
    assert op_types(graph).count("Sin") == 20


def test_scopes_carry_the_names_of_jax():
    def layer(x):
        with jax.named_scope("layer"):
            return jnp.sin(x)

    def fun(x):
        with jax.named_scope("network"):
            x = layer(x)
            x = layer(x)
        return jnp.cos(x)

    operations = {op.type: op.name for op in graph_of(fun, np.float32(1)).get_operations()}
    assert re.fullmatch(r"network/layer/Sin(_\d+)?", operations["Sin"])
    assert operations["Cos"] == "Cos"


def test_scopes_of_jax_are_inside_those_of_tensorflow():
    fun_tf = convert(jax.named_call(jnp.sin, name="inner"), with_gradient=False)

    @tf.function(autograph=False)
    def fun(x):
        with tf.name_scope("outer"):
            return fun_tf(x)

    graph = fun.get_concrete_function(tf.TensorSpec([], tf.float32)).graph
    (name,) = [op.name for op in graph.get_operations() if op.type == "Sin"]
    assert name.startswith("outer/") and "inner" in name


def test_dead_code_is_removed():
    def fun(x):
        jnp.sin(x)
        return x + 1

    assert "Sin" not in op_types(graph_of(fun, np.float32(1)))


def test_a_rule_can_keep_constants():
    seen = []
    primitive = identity_primitive("keeps_constants")

    @registry.rule(primitive.name, keep_constants=True)
    def lower(ctx, x):
        seen.append(x)
        return tf.constant(x)

    assert convert(lambda: primitive.bind(jnp.ones((2,), np.float32)))() is not None
    assert isinstance(seen[0], np.ndarray)


def test_decompositions_are_traced_with_64_bits():
    primitive = identity_primitive("needs_64_bits")

    @registry.decomposition(primitive.name)
    def decompose(x):
        y = x.astype(np.float64) + np.float64(2**-40)
        return (y - x.astype(np.float64)).astype(np.float32)

    with jax.enable_x64(False):
        result = convert(primitive.bind)(np.float32([1]))
    np.testing.assert_array_equal(result, np.float32([2**-40]))


def test_dimensions_in_a_decomposition():
    primitive = identity_primitive("decomposed_with_dimensions")

    @registry.decomposition(primitive.name)
    def decompose(x):
        return jnp.broadcast_to(x.sum(), x.shape)

    fun_tf = convert(primitive.bind, polymorphic_shapes="(b,)")
    np.testing.assert_array_equal(fun_tf(np.float32([1, 2, 3])), [6, 6, 6])
