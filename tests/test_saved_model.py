"""SavedModels of converted functions."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import convert


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

    tf.saved_model.save(Module(), tmp_path)
    loaded = tf.saved_model.load(tmp_path)
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
    tf.saved_model.save(module, tmp_path, options=options)
    loaded = tf.saved_model.load(tmp_path)
    x = tf.constant([0.1, 1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    expected = jax.grad(lambda x: jnp.sum(jnp.sin(x) ** 2))(x.numpy())
    np.testing.assert_allclose(tape.gradient(y, x), expected, rtol=1e-6)
