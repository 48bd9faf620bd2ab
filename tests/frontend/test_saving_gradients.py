"""Functions that JAX cannot differentiate: they are saved, and the reason is not lost."""

import jax
import jax.numpy as jnp
import jax.scipy.optimize
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import convert, export
from tests.helpers import MODES, in_mode


def forward_only(x):
    return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1]


def dynamic_bounds(x, n):
    return jax.lax.fori_loop(0, n, lambda _, y: y * 2, x)


def callback(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


def effect(x):
    return jax.experimental.io_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@jax.custom_vjp
def no_derivative(x):
    return x * 2


def _refused(_, cotangent):
    raise NotImplementedError("nobody has derived it")


no_derivative.defvjp(lambda x: (x * 2, None), _refused)


# A function, its arguments, and a part of JAX's reason.
X = np.float32([1, 2])
CASES = {
    "while": (forward_only, (X,), "Reverse-mode differentiation does not work"),
    "fori": (dynamic_bounds, (X, np.int32(3)), "Reverse-mode differentiation does not work"),
    "pure_callback": (callback, (X,), "callbacks do not support JVP"),
    "io_callback": (effect, (X,), "callbacks do not support JVP"),
    "custom_vjp": (no_derivative, (X,), "nobody has derived it"),
    "symbolic": (forward_only, (X,), "Reverse-mode differentiation does not work"),
}


@pytest.fixture(params=CASES.items(), ids=CASES)
def case(request):
    name, (fun, args, reason) = request.param
    options = {"polymorphic_shapes": "b"} if name == "symbolic" else {}
    sizes = [None] if name == "symbolic" else [2]
    signature = [tf.TensorSpec(sizes if x.ndim else [], x.dtype) for x in args]
    fun_tf = tf.function(convert(fun, **options), autograph=False, input_signature=signature)
    return fun, fun_tf, list(map(tf.constant, args)), reason


def gradient_of(fun_tf):
    def gradient(*args):
        with tf.GradientTape() as tape:
            tape.watch(args[0])
            y = fun_tf(*args)
        return tape.gradient(y, args[0])

    return gradient


def save_and_load(fun_tf, path):
    module = tf.Module()
    module.fun = fun_tf
    tf.saved_model.save(module, path)
    return tf.saved_model.load(path).fun


def test_loaded_function(case, tmp_path):
    fun, fun_tf, args, _ = case
    loaded = save_and_load(fun_tf, tmp_path)
    expected = fun(*(x.numpy() for x in args))
    np.testing.assert_allclose(loaded(*args), expected, rtol=1e-5)


def test_gradient_of_the_loaded_function(case, tmp_path):
    _, fun_tf, args, reason = case
    gradient = gradient_of(save_and_load(fun_tf, tmp_path))
    with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
        gradient(*args)
    with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
        tf.function(gradient, autograph=False)(*args)


def test_compiled_gradient_of_the_loaded_function(case, tmp_path):
    """XLA has no strings to say why, but does not compile it."""
    _, fun_tf, args, _ = case
    gradient = gradient_of(save_and_load(fun_tf, tmp_path))
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnimplementedError)):
        tf.function(gradient, autograph=False, jit_compile=True)(*args)


@pytest.mark.parametrize("mode", MODES)
def test_gradient_in_memory(case, mode):
    fun, fun_tf, args, reason = case
    gradient = gradient_of(convert(fun) if mode == "eager" else fun_tf)
    if mode == "compiled" and "callbacks" in reason:
        reason = "cannot call back into Python"
    with pytest.raises(lowering.LoweringError, match=reason) as error:
        in_mode(gradient, mode)(*args)
    if mode == "eager":  # TensorFlow's functions raise it again without its cause.
        assert reason in str(error.value.__cause__)


def test_the_type_of_the_error_under_autograph(case):
    _, fun_tf, args, reason = case
    with pytest.raises(lowering.LoweringError, match=reason):
        tf.function(gradient_of(fun_tf))(*args)


def test_an_optimizer_of_jax(tmp_path):
    def fun(x):
        minimized = jax.scipy.optimize.minimize
        return minimized(lambda y: jnp.sum((y - x) ** 2), jnp.zeros(2), method="BFGS").x

    spec = [tf.TensorSpec([2], tf.float32)]
    fun_tf = tf.function(convert(fun), autograph=False, input_signature=spec)
    loaded = save_and_load(fun_tf, tmp_path)
    np.testing.assert_allclose(loaded(tf.constant(X)), X, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match="Reverse-mode differentiation"):
        gradient_of(loaded)(tf.constant(X))


def test_what_can_be_differentiated_still_is(tmp_path):
    """One function of a module fails, the other does not."""
    module = tf.Module()
    spec = [tf.TensorSpec([2], tf.float32)]
    module.first = tf.function(convert(forward_only), autograph=False, input_signature=spec)
    module.second = tf.function(convert(lambda x: x**3), autograph=False, input_signature=spec)
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    np.testing.assert_allclose(gradient_of(loaded.second)(tf.constant(X)), 3 * X**2)


def test_a_gradient_that_is_not_lowered(tmp_path):
    """The reason may be ours: a derivative has a primitive that has no rule."""

    @jax.custom_vjp
    def fun(x):
        return x * 2

    def backward(_, cotangent):
        return (jax.ffi.ffi_call("nothing", jax.ShapeDtypeStruct((2,), np.float32))(cotangent),)

    fun.defvjp(lambda x: (x * 2, None), backward)
    spec = [tf.TensorSpec([2], tf.float32)]
    fun_tf = tf.function(convert(fun), autograph=False, input_signature=spec)
    loaded = save_and_load(fun_tf, tmp_path)
    np.testing.assert_array_equal(loaded(tf.constant(X)), 2 * X)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ffi_call"):
        gradient_of(loaded)(tf.constant(X))
    with pytest.raises(lowering.LoweringError, match="ffi_call"):
        gradient_of(fun_tf)(tf.constant(X))


REFUSED = {name: case for name, case in CASES.items() if "callback" not in name}


@pytest.mark.parametrize(("fun", "args", "reason"), REFUSED.values(), ids=REFUSED)
def test_an_export_that_asks_for_a_gradient_that_fails(fun, args, reason, tmp_path):
    place = r"\(test_saving_gradients.py:\d+, in "
    with pytest.raises(lowering.LoweringError, match=f"{reason}.*{place}"):
        export.to_saved_model(fun, args, tmp_path / "model", gradients=True)
    assert not list(tmp_path.iterdir())
    export.to_saved_model(fun, args, tmp_path / "model")
