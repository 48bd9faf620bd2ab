"""A step of training under a MirroredStrategy on two devices, in a process of its own.

TensorFlow makes virtual devices only before it runs anything.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import convert


def main():
    """Raises an AssertionError if the step differs from JAX's."""
    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    w = np.float32([[1, 2], [3, 4], [5, 6]]) / 10

    def loss_jax(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    loss_tf = convert(loss_jax)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        variable = tf.Variable(w)

    def step(x):
        with tf.GradientTape() as tape:
            loss = loss_tf(variable, x)
        gradient = tape.gradient(loss, variable)
        total = tf.distribute.get_replica_context().all_reduce("sum", gradient)
        variable.assign_sub(0.1 * total)
        return loss

    data = tf.data.Dataset.from_tensor_slices(x).batch(4)
    (batch,) = strategy.experimental_distribute_dataset(data)
    for run in (strategy.run, tf.function(strategy.run, autograph=False)):
        before = variable.numpy()
        losses = strategy.experimental_local_results(run(step, (batch,)))
        assert len(losses) == 2
        np.testing.assert_allclose(sum(losses), loss_jax(before, x), rtol=1e-5)
        expected = before - 0.1 * jax.grad(loss_jax)(before, x)
        np.testing.assert_allclose(variable, expected, rtol=1e-5)


if __name__ == "__main__":
    main()
