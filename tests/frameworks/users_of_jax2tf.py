"""Libraries that import `jax.experimental.jax2tf`; `test_users_of_jax2tf` runs these tests.

They have a process of their own, as importing JAX's module tells JAX of containers of TensorFlow.
"""

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import jax2tf
from tests.helpers import op_counts

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


@pytest.mark.parametrize("trainable", [False, True])
def test_jax_module_of_orbax(trainable, tmp_path):
    export = pytest.importorskip("orbax.export")
    params = {"w": jnp.full((3, 2), 0.5), "layers": [jnp.ones(2)]}

    def apply(params, x):
        return jnp.tanh(x @ params["w"] + params["layers"][0])

    with jax2tf.installed():
        module = export.JaxModule(
            params, apply, input_polymorphic_shape="b, ...", trainable=trainable
        )
        signature = [tf.TensorSpec((None, 3), tf.float32, name="x")]
        config = export.ServingConfig(
            "serving_default", input_signature=signature, tf_postprocessor=lambda y: {"y": y}
        )
        export.ExportManager(module, [config]).save(tmp_path)
    signature = tf.saved_model.load(tmp_path).signatures["serving_default"]
    for batch in (1, 4):
        actual = signature(x=tf.constant(X[:batch]))["y"]
        np.testing.assert_allclose(actual, apply(params, X[:batch]), rtol=1e-5)
    counts = op_counts(signature.graph)
    assert counts["MatMul"] and not counts["XlaCallModule"]


def test_convert_jax_of_tensorflowjs(tmp_path):
    converters = pytest.importorskip("tensorflowjs.converters")

    def apply(params, x):
        return jnp.tanh(x @ params)

    with jax2tf.installed():
        converters.convert_jax(
            apply,
            np.ones((3, 2), np.float32),
            input_signatures=[tf.TensorSpec((None, 3), tf.float32)],
            polymorphic_shapes=["(b, 3)"],
            model_dir=str(tmp_path),
        )
    assert (tmp_path / "model.json").exists()
