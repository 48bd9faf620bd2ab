"""NumPyro: densities, variational inference, and Hamiltonian Monte Carlo."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

numpyro = pytest.importorskip("numpyro")
dist = pytest.importorskip("numpyro.distributions")
infer = pytest.importorskip("numpyro.infer")

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = (X @ np.float32([1, -2, 0.5]) > 0).astype(np.int32)
WORDS = np.asarray(jax.random.key_data(jax.random.key(1)))


def regression(x, y=None):
    scale = numpyro.sample("scale", dist.HalfCauchy(1.0))
    weights = numpyro.sample("weights", dist.Normal(0, scale).expand([3]).to_event(1))
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights), obs=y)


def mixture(x, y=None):
    """Distributions that transform, mix and sum out."""
    rates = numpyro.sample("rates", dist.Dirichlet(jnp.ones(2)))
    means = numpyro.sample(
        "means",
        dist.TransformedDistribution(
            dist.Normal(0, 1).expand([2]), dist.transforms.OrderedTransform()
        ),
    )
    parts = dist.MixtureSameFamily(dist.Categorical(rates), dist.StudentT(4.0, means, 0.5))
    with numpyro.plate("data", len(x)):
        numpyro.sample("obs", parts, obs=x[:, 0])


@pytest.mark.parametrize("model", [regression, mixture])
def test_the_potential_energy(model):
    def energy(params, x, y):
        return infer.util.potential_energy(model, (x, y), {}, params)

    with numpyro.handlers.seed(rng_seed=0):
        info = infer.util.initialize_model(jax.random.key(0), model, model_args=(X, Y))
    check(energy, info.param_info.z, X, Y)


def test_predictions():
    def predict(samples, words, x):
        key = jax.random.wrap_key_data(words)
        return infer.Predictive(regression, samples)(key, x)["y"]

    rng = np.random.default_rng(2)
    samples = {
        "scale": rng.uniform(1, 2, 5).astype(np.float32),
        "weights": rng.normal(size=(5, 3)).astype(np.float32),
    }
    check(predict, samples, WORDS, X, differentiable=False)


def test_variational_inference():
    guide = infer.autoguide.AutoNormal(regression)
    svi = infer.SVI(regression, guide, numpyro.optim.Adam(0.05), infer.Trace_ELBO())
    svi.init(jax.random.key(0), X, Y)

    def train(x, y):
        state = svi.init(jax.random.key(0), x, y)
        state, losses = jax.lax.scan(lambda s, _: svi.update(s, x, y), state, length=5)
        return svi.get_params(state), losses

    check(train, X, Y, differentiable=False)


def test_monte_carlo():
    kernel = infer.NUTS(regression, step_size=0.1, adapt_step_size=False, max_tree_depth=4)
    state = kernel.init(jax.random.key(0), 0, None, (X, Y), {})

    def sample(z, words):
        start = state._replace(z=z, rng_key=jax.random.wrap_key_data(words))
        after = kernel.sample(start, (X, Y), {})
        return after.z, after.num_steps, after.accept_prob

    check(sample, state.z, WORDS, differentiable=False, tolerance=1e-3)
