"""Trains and exports a model of Keras; see `test_users_of_jax2tf`, which runs this in a process."""

import sys

import keras
import numpy as np
import tensorflow as tf

import lowering


def main(path: str) -> None:
    """Trains a model on the JAX backend, exports it by Keras' own method, and serves it."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(4, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.2),
            keras.layers.Flatten(),
            keras.layers.Dense(3, activation="softmax"),
        ]
    )
    rng = np.random.default_rng(0)
    images = rng.normal(size=(32, 8, 8, 1)).astype(np.float32)
    labels = rng.integers(0, 3, 32)
    model.compile("adam", "sparse_categorical_crossentropy")
    model.fit(images, labels, epochs=2, verbose=0)
    with lowering.jax2tf.installed():
        model.export(path, verbose=False)
    loaded = tf.saved_model.load(path)
    for batch in (1, 5):
        expected = model(images[:batch])
        np.testing.assert_allclose(loaded.serve(images[:batch]), expected, rtol=1e-4, atol=1e-6)
    graph = loaded.signatures["serving_default"].graph.as_graph_def()
    ops = {node.op for function in graph.library.function for node in function.node_def}
    assert "XlaCallModule" not in ops and {"Conv2D", "MatMul"} <= ops, ops


if __name__ == "__main__":
    main(sys.argv[1])
