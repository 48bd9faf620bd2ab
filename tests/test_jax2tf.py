"""The drop-in API, `lowering.jax2tf`, and that programs of others get it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import jax2tf
from tests.helpers import MODES, ROOT, in_mode, op_counts, op_types, run_tests_alone

X = np.float32([[0.5, 1.5], [-2.0, 3.0], [0.25, -1.0]])


def graph(fun, *specs, **options):
    """The graph of a function converted by the drop-in API."""
    converted = tf.function(jax2tf.convert(fun, **options), autograph=False)
    return converted.get_concrete_function(*specs)


class TestConvert:
    """What the parameters mean."""

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("enable_xla", [True, False])
    def test_numbers(self, mode, enable_xla):
        converted = jax2tf.convert(lambda x: jnp.sin(jnp.cos(x)), enable_xla=enable_xla)
        expected = jnp.sin(jnp.cos(X))
        np.testing.assert_allclose(in_mode(converted, mode)(X), expected, rtol=1e-6)

    def test_enable_xla_is_exact_and_without_it_ops_are_natural(self):
        spec = tf.TensorSpec([3, 2])
        assert op_types(graph(jax.nn.relu, spec, enable_xla=False, with_gradient=False).graph) == [
            "Relu"
        ]
        x = np.float32([np.nan, -0.0, 1])
        exact = jax2tf.convert(lambda x: jnp.maximum(x, 0))(x)
        np.testing.assert_array_equal(exact, jnp.maximum(x, 0))

    @pytest.mark.parametrize("with_gradient", [True, False])
    def test_tflite_takes_it_as_it_stands(self, with_gradient):
        def model(w, x):
            return jax.nn.softmax(jax.nn.relu(x @ w))

        w = np.float32([[1, 2], [3, 4]])
        concrete = graph(
            lambda x: model(w, x),
            tf.TensorSpec([3, 2]),
            enable_xla=False,
            with_gradient=with_gradient,
        )
        content = tf.lite.TFLiteConverter.from_concrete_functions([concrete]).convert()
        interpreter = tf.lite.Interpreter(model_content=content)
        runner = interpreter.get_signature_runner() if interpreter.get_signature_list() else None
        if runner is None:
            interpreter.allocate_tensors()
            interpreter.set_tensor(interpreter.get_input_details()[0]["index"], X)
            interpreter.invoke()
            actual = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        else:
            (actual,) = runner(**{next(iter(runner.get_input_details())): X}).values()
        np.testing.assert_allclose(actual, model(w, X), rtol=1e-5)

    def test_native_serialization_is_refused(self):
        with pytest.raises(ValueError, match=r"jax\.experimental\.jax2tf"):
            jax2tf.convert(jnp.sin, native_serialization=True)
        jax2tf.convert(jnp.sin, native_serialization=False)(X)

    def test_platforms(self):
        for platforms in (None, (), ("cpu",), ["cpu", "tpu"], ("cuda", "rocm")):
            converted = jax2tf.convert(jnp.sin, native_serialization_platforms=platforms)
            np.testing.assert_allclose(converted(X), np.sin(X), rtol=1e-6)
        for platforms in ("cpu", ("cpu", "abacus")):
            with pytest.raises(ValueError, match="native_serialization_platforms"):
                jax2tf.convert(jnp.sin, native_serialization_platforms=platforms)

    def test_disabled_checks(self):
        checks = (
            jax2tf.DisabledSafetyCheck.platform(),
            jax2tf.DisabledSafetyCheck.custom_call("target"),
            jax.export.DisabledSafetyCheck.platform(),
        )
        spec = tf.TensorSpec([None, None])
        shapes = {"polymorphic_shapes": "b, b", "with_gradient": False}
        checked = graph(jnp.sin, spec, native_serialization_disabled_checks=checks, **shapes)
        assert op_counts(checked.graph)["Assert"]
        checks = (jax2tf.DisabledSafetyCheck.shape_assertions(),)
        unchecked = graph(jnp.sin, spec, native_serialization_disabled_checks=checks, **shapes)
        assert not op_counts(unchecked.graph)["Assert"]
        for_converters = graph(jnp.sin, spec, enable_xla=False, **shapes)
        assert not op_counts(for_converters.graph)["Assert"]

    def test_other_arguments(self):
        for argument in (3, None, "f"):
            with pytest.raises(TypeError):
                jax2tf.convert(argument)
        with pytest.raises(TypeError):
            jax2tf.convert(jnp.sin, "b")

    def test_inside_of_a_transformation(self):
        for transform in (jax.jit, jax.grad, jax.vmap):
            with pytest.raises(ValueError, match="inside a JAX transformation"):
                transform(lambda x: jax2tf.convert(jnp.sin)(x).sum())(X)

    @pytest.mark.parametrize("enable_xla", [True, False])
    def test_without_gradient(self, enable_xla):
        converted = jax2tf.convert(jnp.sin, with_gradient=False, enable_xla=enable_xla)
        np.testing.assert_allclose(converted(X), np.sin(X), rtol=1e-6)

    def test_a_gradient_that_was_not_asked_for(self):
        x = tf.constant(X)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = jax2tf.convert(jnp.sin, with_gradient=False)(x)
        with pytest.raises(LookupError, match="with_gradient"):
            tape.gradient(y, x)


class TestShapes:
    """Symbolic shapes."""

    @pytest.mark.parametrize(
        "shapes",
        [
            "(b, _)",
            ["b, ..."],
            [jax2tf.PolyShape("b", 2)],
            jax2tf.PolyShape("b", ...),
            [jax2tf.PolyShape("b", "_")],
        ],
        ids=str,
    )
    def test_specifications(self, shapes):
        concrete = graph(jnp.sin, tf.TensorSpec([None, 2]), polymorphic_shapes=shapes)
        np.testing.assert_allclose(concrete(tf.constant(X)), np.sin(X), rtol=1e-6)

    def test_poly_shape(self):
        assert str(jax2tf.PolyShape("b", 3, ...)) == "(b, 3, ...)"
        assert jax2tf.PolyShape("b", 3) == ("b", 3)
        with pytest.raises(ValueError):
            jax2tf.PolyShape(None)
        specs = {"a": jax2tf.PolyShape("b"), "c": None}
        converted = jax2tf.convert(lambda t: t["a"] + t["c"].sum(), polymorphic_shapes=[specs])
        assert converted({"a": X[0], "c": X[1]}).shape == (2,)

    def test_eval_polymorphic_shape(self):
        a = jax.ShapeDtypeStruct((20, 30), jnp.float32)
        x = np.ones((30, 10), np.float32)
        dot = jax2tf.eval_polymorphic_shape(jnp.dot, polymorphic_shapes=["a, b", "b, c"])
        result, shape = dot(a, x)
        assert (str(result.shape), result.dtype, shape) == ("(a, c)", np.float32, "(a, c)")
        transposed = jax2tf.eval_polymorphic_shape(lambda x: x.T, polymorphic_shapes=[shape])
        assert transposed(result)[1] == "(c, a)"
        trees = jax2tf.eval_polymorphic_shape(
            lambda x: {"sum": x.sum(), "flat": (x.reshape(-1),)},
            polymorphic_shapes=jax2tf.PolyShape("b", ...),
        )
        assert trees(a)[1] == {"sum": "()", "flat": ("(30*b,)",)}
        assert jax2tf.eval_polymorphic_shape(jnp.sin)(a)[1] == "(20, 30)"

    def test_a_specification_of_a_result_is_one_of_an_argument(self):
        spec = jax.ShapeDtypeStruct((3, 2), jnp.float32)
        _, shape = jax2tf.eval_polymorphic_shape(jnp.sin, polymorphic_shapes="b, _")(spec)
        concrete = graph(jnp.cos, tf.TensorSpec([None, 2]), polymorphic_shapes=[shape])
        np.testing.assert_allclose(concrete(tf.constant(X)), np.cos(X), rtol=1e-6)


class TestDtypes:
    """`dtype_of_val`."""

    def test_32_bits(self):
        for value, dtype in (
            (3.14, tf.float32),
            (3, tf.int32),
            (True, tf.bool),
            (1j, tf.complex64),
            (np.float64(1), tf.float32),
            (np.int16(1), tf.int16),
            (tf.constant(1, tf.int64), tf.int32),
            (tf.Variable(1.0, dtype=tf.float64), tf.float32),
            (jnp.ones(2, jnp.bfloat16), tf.bfloat16),
        ):
            assert jax2tf.dtype_of_val(value) == dtype
            assert jax2tf.convert(lambda x: x)(value).dtype == dtype

    def test_64_bits(self):
        with jax.enable_x64(True):
            assert jax2tf.dtype_of_val(3.14) == tf.float64
            assert jax2tf.dtype_of_val(tf.Variable(3.14)) == tf.float32

    def test_what_has_none(self):
        for value in ("text", object(), tf.constant("text")):
            with pytest.raises(TypeError):
                jax2tf.dtype_of_val(value)


def test_call_tf():
    """With the positional parameters of old."""
    declared = jax.ShapeDtypeStruct((2,), np.float32)
    for options in ((), (True,), (False, True), (False, False, declared, True)):
        fun = jax2tf.call_tf(tf.sin, *options)
        np.testing.assert_allclose(jax.jit(fun)(X[0]), np.sin(X[0]), rtol=1e-6)
    with pytest.raises(TypeError):
        jax2tf.call_tf("f")


@pytest.mark.parametrize("parts", [[3, 2], [1, 1], None])
def test_split_to_logical_devices(parts):
    def fun(x):
        return jax2tf.split_to_logical_devices(x, parts)

    graph = tf.function(fun).get_concrete_function(tf.TensorSpec([3, 2])).graph
    assert "XlaSharding" in op_types(graph)
    np.testing.assert_array_equal(tf.function(fun)(X), X)


def test_installed():
    run_tests_alone(ROOT / "tests" / "installed_jax2tf.py")


def test_modules_of_the_package_are_attributes():
    code = """
import sys, lowering
assert "lowering.export" not in sys.modules and "lowering.jax2tf" not in sys.modules
assert "jax.experimental.jax2tf" not in sys.modules
lowering.export.to_saved_model, lowering.jax2tf.installed, lowering.call_tf
assert set(lowering.__all__) <= {*dir(lowering), "export", "jax2tf"}
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    with pytest.raises(AttributeError, match="nothing"):
        lowering.nothing  # noqa: B018


def test_containers_are_plain_beside_the_module_of_jax():
    """Importing it tells JAX of the containers that TensorFlow makes of attributes."""
    code = """
import jax.experimental.jax2tf, lowering, numpy as np, tensorflow as tf
module = tf.Module()
module.params = {"w": [tf.Variable(2.0)], "b": (tf.Variable(1.0),)}
seen = []
def fun(params, x):
    seen.append((type(params), type(params["w"]), type(params["b"])))
    return params
result = lowering.convert(fun)(module.params, 1.0)
assert seen == [(dict, list, tuple)], seen
assert type(result) is dict and type(result["b"]) is tuple, result
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
