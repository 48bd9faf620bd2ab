"""The front door: what goes in, what comes out, and what is refused."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import convert
from tests.helpers import assert_same

Point = collections.namedtuple("Point", ["x", "y"])


def test_pytrees(run):
    def fun(tree, point):
        a, (b, nothing) = tree["a"], tree["b"]
        return {"sum": a + b, "point": Point(point.y, point.x), "nothing": nothing}, [a]

    args = {"a": np.float32(1), "b": (np.float32([2, 3]), None)}, Point(np.int32(4), np.int32(5))
    assert_same(run(fun, *args), fun(*args))


def test_results_without_arguments(run):
    assert_same(run(lambda: (jnp.float32(1), [])), (np.float32(1), []))


def test_keyword_arguments_and_defaults(run):
    def fun(x, scale=2.0, *, shift=1, negate=False):
        return -x * scale + shift if negate else x * scale + shift

    x = np.float32([1, 2])
    assert_same(run(fun, x), fun(x))
    assert_same(run(fun, x, 3.0, shift=np.float32(4)), fun(x, 3.0, shift=np.float32(4)))
    partial = functools.partial(fun, negate=True)
    assert_same(run(partial, x), partial(x))


def test_values_of_every_kind(run):
    values = [
        tf.constant([1.0, 2.0]),
        np.float32([1, 2]),
        jnp.float32([1, 2]),
        np.float32(3),
        4,
        5.0,
        True,
    ]
    for value in values:
        expected = jnp.multiply(np.asarray(value) if isinstance(value, tf.Tensor) else value, 2)
        assert_same(run(lambda x: jnp.multiply(x, 2), value), expected)


def test_variables_are_read_at_each_call():
    variable = tf.Variable([1.0, 2.0])
    fun_tf = tf.function(convert(lambda x: x + 1), autograph=False)
    assert_same(fun_tf(variable), np.float32([2, 3]))
    variable.assign([5.0, 6.0])
    assert_same(fun_tf(variable), np.float32([6, 7]))


def test_arrays_may_change_between_calls():
    x = np.float32([1, 2])
    fun_tf = convert(lambda x: x * 1)
    first = fun_tf(x)
    x[:] = 7
    assert_same(first, np.float32([1, 2]))
    assert_same(fun_tf(x), np.float32([7, 7]))


@pytest.mark.parametrize("scalar", [2, 2.0, 2j])
def test_python_scalars_are_weakly_typed(run, scalar):
    x = np.ones(2, jnp.bfloat16)
    expected = jax.jit(lambda x, y: x * y)(x, scalar)
    assert run(lambda x, y: x * y, x, scalar).dtype == tf.as_dtype(expected.dtype)


@pytest.mark.parametrize("enabled", [False, True])
def test_x64(run, enabled):
    with jax.enable_x64(enabled):
        wide = tf.constant([1.0, 2.0], tf.float64), tf.constant([3], tf.int64), 4.0, 5
        args = [np.asarray(x) if isinstance(x, tf.Tensor) else x for x in wide]
        assert_same(run(lambda *xs: [x + 1 for x in xs], *wide), [jnp.add(x, 1) for x in args])


def test_x64_may_change_between_calls():
    fun_tf = convert(lambda x: x + jnp.arange(2))
    x = np.int64([1, 2])
    for enabled in (False, True, False):
        with jax.enable_x64(enabled):
            assert fun_tf(x).dtype == (tf.int64 if enabled else tf.int32)


def test_methods_and_jitted_functions(run):
    class Model:
        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return x @ self.w

        @functools.partial(jax.jit, static_argnums=0)
        def jitted(self, x):
            return x @ self.w

    model = Model(np.float32([[1, 2], [3, 4]]))
    x = np.float32([[5, 6]])
    assert_same(run(model, x), model(x))
    assert_same(run(model.jitted, x), model(x))


def test_names_of_arguments_are_kept():
    fun_tf = tf.function(convert(lambda image, label: image + label), autograph=False)
    spec = tf.TensorSpec([2], tf.float32)
    names = fun_tf.get_concrete_function(spec, spec).structured_input_signature[0]
    assert [name.name for name in names] == ["image", "label"]


def test_any_names_of_arguments(run):
    assert_same(run(lambda args, kwargs, x=1: args + kwargs + x, 2, np.float32(3)), np.float32(6))


def test_keys_are_returned_as_key_data(run):
    key = jax.random.key(7)
    words = jax.random.key_data(jax.random.split(key))
    assert_same(run(lambda: jax.random.split(key)), words)
    assert_same(convert(jax.random.split)(key), words)


def test_each_shape_is_traced_once():
    traced = []
    fun_tf = convert(lambda x: traced.append(x.shape) or x * 2)
    for size in (2, 3, 2, 3):
        fun_tf(np.ones(size, np.float32))
    assert traced == [(2,), (3,)]


# Errors.


def test_not_a_function():
    with pytest.raises(TypeError, match="expected a JAX function, not int"):
        convert(3)


@pytest.mark.parametrize(
    ("make", "advice"),
    [
        (
            lambda f: jax.export.export(f)(1.0),
            "not Exported; it has the program in StableHLO alone",
        ),
        (lambda f: f.lower(1.0), "not Lowered; it has the program in StableHLO alone"),
        (lambda f: f.lower(1.0).compile(), "not Compiled; it is machine code"),
        (lambda f: jax.make_jaxpr(f)(1.0), "jax.extend.core.jaxpr_as_fun makes a function of it"),
        (tf.function, "lowering.call_tf makes a JAX function of it"),
    ],
)
def test_what_is_taken_for_a_function(make, advice):
    taken = make(jax.jit(lambda x: x))
    for use in (lowering.convert, lambda f: lowering.export.to_onnx(f, (1.0,))):
        with pytest.raises(TypeError, match=advice):
            use(taken)


def test_unknown_target():
    with pytest.raises(ValueError, match="unknown target 'coreml'"):
        convert(jnp.sin, target="coreml")
    with pytest.raises(ValueError, match="enable_xla=True"):
        convert(jnp.sin, target="xla", enable_xla=False)


def test_wrong_arguments(run):
    with pytest.raises(TypeError, match=r"missing|required|too many"):
        run(lambda x, y: x + y, np.float32(1))


@pytest.mark.parametrize("value", ["text", object(), {1, 2}])
def test_no_array(value):
    with pytest.raises(TypeError, match=r"args\[0\]\['a'\], which is x.* has type .* no JAX"):
        convert(lambda x: x)({"a": value})


def test_no_array_as_a_keyword():
    with pytest.raises(TypeError, match=r"kwargs\['x'\] has type str"):
        convert(lambda x: x)(x="text")


def test_string_tensor():
    with pytest.raises(TypeError, match=r"args\[0\], which is x of .*, has type string"):
        convert(lambda x: x)(tf.constant("text"))


def test_dtype_that_tensorflow_lacks():
    x = jnp.zeros(2, jnp.float8_e4m3)
    with pytest.raises(TypeError, match=r"TensorFlow has no dtype .*float8_e4m3"):
        convert(lambda x: x.astype(jnp.float32))(x)


def test_inside_a_transformation():
    fun_tf = convert(jnp.sin)
    with pytest.raises(lowering.LoweringError, match="inside a JAX transformation"):
        jax.jit(lambda x: fun_tf(x))(1.0)
    with pytest.raises(lowering.LoweringError, match="inside a JAX transformation"):
        jax.grad(lambda x: fun_tf(x))(1.0)
