"""Functions that the tests of the command line name."""

import jax
import jax.numpy as jnp
import numpy as np

WEIGHTS = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)

no_function = 3


def predict(x):
    """A small network."""
    return jax.nn.softmax(jax.nn.relu(x @ WEIGHTS))


def predict_with(params, x):
    """The same with its weights as parameters."""
    return jax.nn.softmax(jax.nn.relu(x @ params["w"]))


def params():
    """The parameters of `predict_with`."""
    return {"w": WEIGHTS}


def noise(key, scale):
    """What a key makes, and another key."""
    return jax.random.bits(key, scale.shape) * scale, jax.random.wrap_key_data(
        jax.random.key_data(key)[::-1]
    )


def data():
    """Inputs of `predict` for its quantization."""
    rng = np.random.default_rng(0)
    return [(rng.uniform(-1, 1, (5, 3)).astype(np.float32),) for _ in range(4)]


def refused(x):
    """What only a process with JAX can run."""
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + jnp.ones(())


def mistaken(x):
    """A function with a mistake of its own."""
    return {}["no such key"] + x


def recurrent(x):
    """A loop whose steps are activations."""

    def step(carry, row):
        carry = jax.nn.relu6(carry + row)
        return carry, carry

    return jax.lax.scan(step, jnp.zeros(x.shape[1:]), x)


def arguments():
    """The arguments of `of_batch`: containers with a symbolic size."""
    (b,) = jax.export.symbolic_shape("b")
    x, y = jax.ShapeDtypeStruct((b, 3), "float32"), jax.ShapeDtypeStruct((b,), "int32")
    return ({"x": x, "y": y}, np.float32(2))


def of_batch(batch, scale=1.0):
    """A function of a container."""
    return {"loss": scale * jnp.sum(batch["x"] @ WEIGHTS) + jnp.sum(batch["y"])}


def encode(x):
    """The first of two functions."""
    return x @ WEIGHTS


def decode(z):
    """The second of two functions."""
    return jnp.tanh(z) @ WEIGHTS.T


def of_wrong_shapes(x):
    """A function that JAX refuses with a TypeError."""
    return x @ jnp.ones((7, 7))


def of_failing_callback(x):
    """Its callback fails whenever JAX computes it."""

    def fail(_):
        raise ValueError("of the callback")

    jax.debug.callback(fail, x)
    return x + 1


def parts(x):
    """Two results."""
    return jnp.maximum(x, 0), jnp.minimum(x, 0)
