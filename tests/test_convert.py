"""The front door: what goes in, what comes out, gradients, SavedModels and errors."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering import convert

MODES = ["eager", "graph", "compiled"]

Point = collections.namedtuple("Point", ["x", "y"])


@pytest.fixture(params=MODES)
def run(request):
    """Applies the conversion of a JAX function in a mode."""

    def run(fun_jax, *args, **kwargs):
        fun_tf = convert(fun_jax)
        if request.param != "eager":
            compiled = request.param == "compiled"
            fun_tf = tf.function(fun_tf, autograph=False, jit_compile=compiled)
        return fun_tf(*args, **kwargs)

    return run


def assert_same(actual, expected):
    """Compares pytrees: structure, dtypes and values."""
    actual = jax.tree.map(lambda x: x.numpy(), actual)
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-6)


# Arguments and results.


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


def test_containers_of_a_module():
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.params = {"w": [tf.Variable(2.0), tf.Variable(3.0)], "b": (tf.Variable(1.0),)}

    params = Module().params
    fun = convert(lambda p, x: p["w"][0] * x + p["w"][1] + p["b"][0])
    assert_same(fun(params, 5.0), np.float32(14))


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


def test_keys_are_their_words(run):
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


# What JAX itself cannot compile.


@pytest.mark.parametrize("fun", [lax.div, lax.rem])
def test_divisors_that_xla_finds_to_be_zero(run, fun):
    # Compiled as one program, this ends the process of JAX.
    x = np.int8([3, -5, 0])
    assert_same(run(lambda x: fun(x ^ x, x ^ x), x), fun(np.zeros_like(x), np.zeros_like(x)))


# Gradients.


def gradients(fun_jax, *args, mode="eager"):
    """The gradients by TensorFlow of the sum of squares of the results."""
    fun_tf = convert(fun_jax)

    def gradients_of(*args):
        with tf.GradientTape() as tape:
            tape.watch([x for x in args if x.dtype.is_floating or x.dtype.is_complex])
            results = tf.nest.flatten(fun_tf(*args))
            loss = sum(
                tf.reduce_sum(tf.square(tf.abs(y)))
                for y in results
                if y.dtype.is_floating or y.dtype.is_complex
            )
        return tape.gradient(loss, args)

    if mode != "eager":
        gradients_of = tf.function(gradients_of, autograph=False, jit_compile=mode == "compiled")
    return gradients_of(*map(tf.constant, args))


def expected_gradients(fun_jax, *args, argnums=0):
    def loss(*args):
        results = jax.tree.leaves(fun_jax(*args))
        return sum(
            jnp.sum(jnp.abs(y) ** 2) for y in results if jnp.issubdtype(y.dtype, jnp.inexact)
        )

    return jax.grad(loss, argnums)(*args)


@pytest.mark.parametrize("mode", MODES)
def test_gradient(mode):
    def fun(x, y):
        return jnp.sin(x) @ y, {"z": jnp.tanh(y)}

    args = np.float32([[1, 2, 3]]), np.float32([[0.5], [1], [-1]])
    actual = gradients(fun, *args, mode=mode)
    assert_same(list(actual), list(expected_gradients(fun, *args, argnums=(0, 1))))


def test_gradient_of_integers_and_unused_arguments():
    def fun(x, indices, unused, flags):
        return jnp.where(flags, x[indices], 2.0), indices + 1

    args = np.float32([1, 2, 3]), np.int32([2, 0]), np.float32([4, 5]), np.bool_([True, False])
    x, indices, unused, flags = gradients(fun, *args)
    assert_same(x, expected_gradients(fun, *args))
    assert_same(unused, np.zeros(2, np.float32))
    assert indices is None and flags is None


def test_gradient_of_integers_alone():
    fun_tf = convert(lambda x: x * 2)
    with tf.GradientTape() as tape:
        x = tf.constant([1, 2])
        y = tf.cast(fun_tf(x), tf.float32)
    assert tape.gradient(y, x) is None


def test_gradient_of_a_custom_vjp():
    @jax.custom_vjp
    def fun(x):
        return x**2

    fun.defvjp(lambda x: (x**2, None), lambda _, g: (g * 100,))
    x = np.float32(3)
    assert_same(gradients(fun, x)[0], expected_gradients(fun, x))
    assert gradients(fun, x)[0] == 2 * 9 * 100


def test_gradient_of_a_custom_jvp():
    @jax.custom_jvp
    def fun(x):
        return x**2

    fun.defjvp(lambda x, t: (x[0] ** 2, 10 * t[0]))
    x = np.float32(3)
    assert_same(gradients(fun, x)[0], expected_gradients(fun, x))


@pytest.mark.parametrize("mode", MODES)
def test_gradient_of_complex_numbers(mode):
    """TensorFlow's gradient of a complex number is the conjugate of JAX's."""

    def fun(x, y):
        return x * x * y + jnp.conj(x), jnp.imag(x) * y

    args = np.complex64([1 + 2j, 3 - 1j]), np.complex64([2 - 1j, 1j])
    expected = expected_gradients(fun, *args, argnums=(0, 1))
    actual = gradients(fun, *args, mode=mode)
    assert_same(list(actual), [np.conj(g) for g in expected])

    def same_in_tensorflow(x, y):
        return x * x * y + tf.math.conj(x), tf.cast(tf.math.imag(x), tf.complex64) * y

    x, y = map(tf.constant, args)
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        loss = sum(tf.reduce_sum(tf.abs(z) ** 2) for z in same_in_tensorflow(x, y))
    for a, e in zip(actual, tape.gradient(loss, [x, y])):
        np.testing.assert_allclose(a, e, rtol=1e-5)


@pytest.mark.parametrize("mode", MODES)
def test_second_order_gradient(mode):
    fun_tf = convert(lambda x: jnp.sum(jnp.sin(x) ** 3))

    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = fun_tf(x)
            first = inner.gradient(y, x)
            total = tf.reduce_sum(first**2)
        return outer.gradient(total, x)

    if mode != "eager":
        second = tf.function(second, autograph=False, jit_compile=mode == "compiled")
    x = np.float32([0.3, 1.2])

    def total_jax(x):
        return jnp.sum(jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 3))(x) ** 2)

    np.testing.assert_allclose(second(tf.constant(x)), jax.grad(total_jax)(x), rtol=1e-5)


def test_gradient_of_variables():
    w = tf.Variable([1.0, 2.0])
    fun_tf = convert(lambda w, x: jnp.dot(w, x) ** 2)
    with tf.GradientTape() as tape:
        y = fun_tf(w, tf.constant([3.0, 4.0]))
    np.testing.assert_allclose(tape.gradient(y, w), [66, 88])


def test_gradient_of_a_weakly_typed_result():
    x = np.float32(2)
    assert_same(gradients(lambda x: (x * 0 + 1, x), x)[0], np.float32(4))


def test_with_gradient_false():
    fun_tf = convert(lambda x: x * 2, with_gradient=False)
    x = tf.constant(1.0)
    assert fun_tf(x) == 2
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fun_tf(x)
    with pytest.raises(LookupError, match="with_gradient=False"):
        tape.gradient(y, x)


# SavedModels.


def save_and_load(module, path):
    tf.saved_model.save(module, path)
    return tf.saved_model.load(path)


def test_saved_model(tmp_path):
    def fun(params, x):
        return jnp.tanh(x @ params["w"] + params["b"])

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.params = {"w": tf.Variable(tf.ones([3, 2])), "b": tf.Variable([0.5, -0.5])}
            self.fun = convert(fun, polymorphic_shapes=(None, "(b, 3)"))

        @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 3], tf.float32)])
        def __call__(self, x):
            return self.fun(self.params, x)

    loaded = save_and_load(Module(), str(tmp_path))
    params = {"w": np.ones((3, 2), np.float32), "b": np.float32([0.5, -0.5])}
    for batch in (1, 4):
        x = np.linspace(-1, 1, 3 * batch, dtype=np.float32).reshape(batch, 3)
        np.testing.assert_allclose(loaded(x), fun(params, x), rtol=1e-6)


def test_saved_model_with_gradient(tmp_path):
    module = tf.Module()
    module.f = tf.function(
        convert(lambda x: jnp.sum(jnp.sin(x) ** 2)),
        autograph=False,
        input_signature=[tf.TensorSpec([3], tf.float32)],
    )
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, str(tmp_path), options=options)
    loaded = tf.saved_model.load(str(tmp_path))
    x = tf.constant([0.1, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x.numpy())
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)


# Symbolic dimensions.


def test_polymorphic_shapes(run):
    fun_tf = tf.function(
        convert(lambda x, y: (x.reshape(-1), x.sum(0) * y.shape[0]), polymorphic_shapes="(b, ...)"),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None, 2])],
    )
    for batch in (1, 5):
        x = np.arange(3 * batch, dtype=np.float32).reshape(batch, 3)
        flat, total = fun_tf(x, np.ones((batch, 2), np.float32))
        np.testing.assert_array_equal(flat, x.reshape(-1))
        np.testing.assert_array_equal(total, x.sum(0) * batch)


def test_polymorphic_shapes_of_some_arguments():
    fun_tf = convert(
        lambda x, ys: x + ys[0] + ys[1].sum(), polymorphic_shapes=("(b,)", ["b", None])
    )
    result = fun_tf(np.ones(2, np.float32), [np.ones(2, np.float32), np.ones(3, np.float32)])
    np.testing.assert_array_equal(result, [5, 5])


def test_polymorphic_gradient():
    fun_tf = convert(lambda x: jnp.mean(x**2), polymorphic_shapes="(b, _)")

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 2])])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(x)
        return tape.gradient(y, x)

    x = np.float32([[1, 2], [3, 4], [5, 6]])
    np.testing.assert_allclose(gradient(x), x / 3, rtol=1e-6)


def test_polymorphic_constraints():
    convert_one = functools.partial(convert, lambda x: x[:4], polymorphic_shapes="(b,)")
    x = np.arange(6, dtype=np.float32)
    fun_tf = convert_one(polymorphic_constraints=["b >= 4"])
    np.testing.assert_array_equal(fun_tf(x), x[:4])


# Errors.


def test_not_a_function():
    with pytest.raises(TypeError, match="takes a JAX function, not int"):
        convert(3)


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
    with pytest.raises(TypeError, match=r"args\[0\]\['a'\] has type .* no JAX array"):
        convert(lambda x: x)({"a": value})


def test_no_array_as_a_keyword():
    with pytest.raises(TypeError, match=r"kwargs\['x'\] has type str"):
        convert(lambda x: x)(x="text")


def test_string_tensor():
    with pytest.raises(TypeError, match=r"args\[0\] has type string"):
        convert(lambda x: x)(tf.constant("text"))


def test_dtype_that_tensorflow_lacks():
    x = jnp.zeros(2, jnp.float8_e4m3)
    with pytest.raises(TypeError, match=r"TensorFlow has no dtype .*float8_e4m3"):
        convert(lambda x: x.astype(jnp.float32))(x)


def test_unknown_primitive():
    primitive = jax.extend.core.Primitive("undreamt_of")
    primitive.def_abstract_eval(lambda x: x)
    with pytest.raises(lowering.UnsupportedError) as caught:
        convert(primitive.bind, target="tf")(np.float32([1]))
    message = str(caught.value)
    assert "undreamt_of(f32[1])" in message
    assert "target 'tf'" in message
    assert isinstance(caught.value, NotImplementedError)


def test_inside_a_transformation():
    fun_tf = convert(jnp.sin)
    with pytest.raises(lowering.LoweringError, match="inside a JAX transformation"):
        jax.jit(lambda x: fun_tf(x))(1.0)
    with pytest.raises(lowering.LoweringError, match="inside a JAX transformation"):
        jax.grad(lambda x: fun_tf(x))(1.0)


def test_shape_unknown_to_tensorflow():
    fun_tf = tf.function(convert(lambda x: x), autograph=False)
    with pytest.raises(ValueError, match="name its dimensions with polymorphic_shapes"):
        fun_tf.get_concrete_function(tf.TensorSpec([None], tf.float32))
    with pytest.raises(ValueError, match="unknown rank"):
        fun_tf.get_concrete_function(tf.TensorSpec(None, tf.float32))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("(b, c)", "polymorphic_shapes '\\(b, c\\)' for args\\[0\\]"),
        ("(5,)", "polymorphic_shapes '\\(5,\\)' for args\\[0\\]"),
        (("b", "b"), "pytree prefix"),
    ],
)
def test_polymorphic_shapes_that_do_not_fit(spec, message):
    with pytest.raises(ValueError, match=message):
        convert(lambda x: x, polymorphic_shapes=spec)(np.ones(3, np.float32))


@pytest.mark.parametrize(("spec", "sizes"), [(("b", "b"), (2, 3)), (("b", "2*b"), (2, 3))])
def test_sizes_that_contradict_each_other(spec, sizes):
    fun_tf = convert(lambda x, y: (x, y), polymorphic_shapes=spec)
    with pytest.raises(ValueError, match=r"has size 3, not \d"):
        fun_tf(*(np.ones(size, np.float32) for size in sizes))


def test_a_multiple_of_a_dimension():
    fun_tf = convert(lambda x: x.reshape(2, -1), polymorphic_shapes="2*b")
    assert fun_tf(np.ones(6, np.float32)).shape == (2, 3)
    with pytest.raises(ValueError, match=r"2\*b has size 5"):
        fun_tf(np.ones(5, np.float32))


def test_dimensions_that_cannot_be_solved():
    with pytest.raises(ValueError, match="cannot solve for the dimension variables"):
        convert(lambda x: x, polymorphic_shapes="(b + c,)")(np.ones(3, np.float32))


def test_the_line_of_the_program_is_named():
    primitive = jax.extend.core.Primitive("undreamt_of_either")
    primitive.def_abstract_eval(lambda x: x)

    def program(x):
        return primitive.bind(x + 1)

    with pytest.raises(lowering.UnsupportedError, match=r"test_convert\.py:\d+.*program"):
        convert(program)(np.float32([1]))
