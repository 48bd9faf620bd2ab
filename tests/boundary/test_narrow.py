"""Programs with numbers of eight bits or fewer; harnesses test single primitives."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering import narrow_formats

FLOATS = [dtype.type for dtype in narrow_formats.FLOAT]


def quantized_layer(w, x):
    scale = jnp.max(jnp.abs(x)) / 448
    quantized = (x / scale).astype(jnp.float8_e4m3fn)
    contract = (((1,), (0,)), ((), ()))
    y = lax.dot_general(quantized, w, contract, preferred_element_type=jnp.float32)
    return y * scale


def test_a_quantized_layer_in_a_saved_model(tmp_path):
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4, 3)).astype(ml_dtypes.float8_e4m3fn)
    x = rng.normal(size=(2, 4)).astype(np.float32)
    expected = jax.jit(quantized_layer)(w, x)
    model = tf.Module()
    model.w = tf.Variable(w)
    layer = lowering.convert(quantized_layer, polymorphic_shapes=["_, _", "b, _"])
    model.layer = tf.function(
        lambda x: layer(model.w, x),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 4], tf.float32)],
    )
    tf.saved_model.save(model, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(loaded.layer(x), expected, rtol=1e-6)


def test_large_constants_stay_narrow():
    rng = np.random.default_rng(0)
    w = jnp.asarray(rng.normal(size=(512, 512)), jnp.float8_e4m3fn)
    x = rng.normal(size=(2, 512)).astype(np.float32)

    def fun(x):
        return x @ w.astype(jnp.float32)

    function = tf.function(lowering.convert(fun), autograph=False)
    np.testing.assert_allclose(function(x), jax.jit(fun)(x), rtol=1e-4, atol=1e-4)
    concrete = function.get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
    assert concrete.graph.as_graph_def().ByteSize() < 1.5 * w.nbytes


def test_gradients_pass_through():
    def loss(w, x):
        return jnp.sum(w.astype(jnp.float8_e5m2).astype(jnp.float32) * x)

    w, x = np.array([1.1, 2.3], np.float32), np.array([3, 4], np.float32)
    v = tf.Variable(w)
    with tf.GradientTape() as tape:
        result = lowering.convert(loss)(v, x)
    np.testing.assert_array_equal(tape.gradient(result, v), jax.grad(loss)(w, x))


def test_control_flow_carries_them():
    def fun(x):
        x = x.astype(jnp.int4)
        carry, ys = lax.scan(lambda c, y: (c + y, lax.max(c, y)), x[0], x)
        last = lax.while_loop(lambda c: c[0] < 20, lambda c: (c[0] + 1, c[1] + c[1]), (0, carry))
        return last[1].astype(jnp.int32), ys.astype(jnp.int32)

    x = np.arange(200, dtype=np.int32).reshape(100, 2)
    actual = tf.function(lowering.convert(fun), autograph=False, jit_compile=True)(x)
    jax.tree.map(np.testing.assert_array_equal, tuple(actual), jax.jit(fun)(x))


def test_callbacks_are_given_them():
    seen = []

    def callback(x):
        seen.append(x.dtype)
        return x + x

    def fun(x):
        return jax.pure_callback(callback, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = np.array([1, 2], ml_dtypes.float8_e5m2)
    result = lowering.convert(fun)(x)
    np.testing.assert_array_equal(result.numpy(), x + x)
    assert seen == [x.dtype]


def test_what_cannot_cross_the_boundary_is_named():
    def double(x):
        return x + x

    with pytest.raises(TypeError, match=r"TensorFlow has no dtype .*float8_e3m4"):
        lowering.convert(lambda x: x.astype(ml_dtypes.float8_e3m4))(np.ones(2, np.float32))
    compiled = tf.function(lowering.convert(double), autograph=False, jit_compile=True)
    with pytest.raises(lowering.UnsupportedError, match=r"argument of dtype int4 .*Pass int8"):
        compiled(tf.constant(np.ones(2, ml_dtypes.int4)))
    graph = tf.function(lowering.convert(double), autograph=False)
    with pytest.raises(lowering.UnsupportedError, match="argument of dtype int2 in a graph"):
        graph(tf.constant(np.ones(2, ml_dtypes.int2)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, ml_dtypes.int4])
@pytest.mark.parametrize("compiled", [False, True])
def test_largest_float4_is_beyond_integers(dtype, compiled):
    def fun(x):
        narrow = lax.convert_element_type(x, ml_dtypes.float4_e2m1fn)
        return lax.convert_element_type(narrow, dtype).astype(np.int32)

    x = np.array([-6, -4, -1.5, 0, 1.5, 4, 6], np.float32)
    actual = tf.function(lowering.convert(fun), autograph=False, jit_compile=compiled)(x)
    np.testing.assert_array_equal(actual, jax.jit(fun)(x))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    "primitive", [lax.cummax, lax.cummin, lax.cumlogsumexp, "max", "min", "argmax", "argmin"]
)
@pytest.mark.parametrize("dtype", FLOATS[:-1], ids=lambda dtype: np.dtype(dtype).name)
def test_what_starts_from_infinity(primitive, dtype, compiled):
    def fun(x):
        narrow = lax.convert_element_type(x, dtype)
        along = (
            getattr(narrow, primitive)(1) if isinstance(primitive, str) else primitive(narrow, 1)
        )
        return along.astype(np.float32)

    x = np.array([[0.5, 1, 2, 0.25], [1, 8, 0.25, 2]], np.float32)
    actual = tf.function(lowering.convert(fun), autograph=False, jit_compile=compiled)(x)
    np.testing.assert_array_equal(actual, jax.jit(fun)(x))
