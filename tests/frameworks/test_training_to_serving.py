"""From training in JAX to a SavedModel that a process without JAX serves, for each framework."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import export

optax = pytest.importorskip("optax")

X = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
Y = np.tanh(X @ np.float32([[1], [-2], [0.5]]))


def flax_linen():
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(8), nn.tanh, nn.LayerNorm(), nn.Dense(1)])
    return model.apply, model.init(jax.random.key(0), X)


def flax_nnx():
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(nnx.Linear(3, 8, rngs=rngs), jnp.tanh, nnx.Linear(8, 1, rngs=rngs))
    graph, params = nnx.split(model)

    def apply(params, x):
        return nnx.merge(graph, params)(x)

    return apply, params


def equinox():
    eqx = pytest.importorskip("equinox")
    params, static = eqx.partition(eqx.nn.MLP(3, 1, 8, 2, key=jax.random.key(0)), eqx.is_array)

    def apply(params, x):
        return jax.vmap(eqx.combine(params, static))(x)

    return apply, params


def haiku():
    hk = pytest.importorskip("haiku")
    model = hk.without_apply_rng(
        hk.transform(lambda x: hk.nets.MLP([8, 1], activation=jnp.tanh)(x))
    )
    return model.apply, model.init(jax.random.key(0), X)


def numpyro():
    """The mean and the likelihood of a guide, fitted by its own optimizer, are a model as well."""
    numpyro = pytest.importorskip("numpyro")
    dist = pytest.importorskip("numpyro.distributions")
    infer = pytest.importorskip("numpyro.infer")

    def model(x, y=None):
        w = numpyro.sample("w", dist.Normal(0, 1).expand([3, 1]).to_event(2))
        with numpyro.plate("data", x.shape[0]):
            numpyro.sample("y", dist.Normal((x @ w)[:, 0], 0.1), obs=y)

    guide = infer.autoguide.AutoNormal(model)
    svi = infer.SVI(model, guide, numpyro.optim.Adam(0.05), infer.Trace_ELBO())
    fitted = svi.run(jax.random.key(0), 100, X, Y[:, 0], progress_bar=False).params

    def apply(params, x):
        return x @ guide.median(params)["w"]

    return apply, fitted


@pytest.mark.parametrize("make", [flax_linen, flax_nnx, equinox, haiku, numpyro])
def test_training_to_serving(make, tmp_path):
    apply, params = make()

    def loss(params):
        return jnp.mean((apply(params, X) - Y) ** 2)

    optimizer = optax.adam(0.03)
    state = optimizer.init(params)
    before = loss(params)

    @jax.jit
    def step(params, state):
        updates, state = optimizer.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    for _ in range(30):
        params, state = step(params, state)
    assert loss(params) < before

    path = tmp_path / "model"
    spec = jax.ShapeDtypeStruct((16, 3), "float32")
    export.to_saved_model(apply, (spec,), path, params=params, polymorphic_shapes=["b, _"])
    loaded = tf.saved_model.load(str(path))
    np.savez(tmp_path / "expected.npz", x=X, y=apply(params, X))
    assert loaded.signatures
    code = f"""
import sys
sys.modules["jax"] = sys.modules["lowering"] = None
import numpy as np, tensorflow as tf
serve = tf.saved_model.load({str(path)!r}).signatures["serving_default"]
(name,) = serve.structured_input_signature[1]
expected = np.load({str(tmp_path / "expected.npz")!r})
for batch in (1, 16):
    (y,) = serve(**{{name: tf.constant(expected["x"][:batch])}}).values()
    np.testing.assert_allclose(y, expected["y"][:batch], rtol=1e-4, atol=1e-5)
"""
    environment = {**os.environ, "PYTHONPATH": ""}
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment)
