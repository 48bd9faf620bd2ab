"""distrax: distributions, bijectors, and a hidden Markov model."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

RNG = np.random.default_rng(0)


@program
def flow():
    distrax = pytest.importorskip("distrax")

    def density(params, x):
        layers = [
            distrax.MaskedCoupling(
                mask=jnp.arange(4) % 2 == i,
                conditioner=lambda x, w=w: jnp.tanh(x @ w).reshape(*x.shape, 13),
                bijector=lambda p: distrax.RationalQuadraticSpline(p, -3.0, 3.0),
            )
            for i, w in enumerate(params)
        ]
        base = distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4))
        return distrax.Transformed(base, distrax.Chain(layers)).log_prob(x)

    params = [RNG.normal(size=(4, 4 * 13)).astype(np.float32) for _ in range(2)]
    x = RNG.normal(size=(5, 4)).astype(np.float32)
    return Program(density, (params, x), differentiable=True)


@program
def hidden_markov_model():
    distrax = pytest.importorskip("distrax")

    def infer(logits, observations):
        hmm = distrax.HMM(
            init_dist=distrax.Categorical(logits[0]),
            trans_dist=distrax.Categorical(logits),
            obs_dist=distrax.Normal(jnp.arange(3.0), jnp.ones(3)),
        )
        _, _, smoothed, evidence = hmm.forward_backward(observations)
        return smoothed, evidence, hmm.viterbi(observations)

    logits = RNG.normal(size=(3, 3)).astype(np.float32)
    observations = RNG.uniform(0, 2, 8).astype(np.float32)
    return Program(infer, (logits, observations))


@program
def samples():
    distrax = pytest.importorskip("distrax")

    def sample(logits, words):
        keys = jax.random.split(jax.random.wrap_key_data(words), 3)
        mixture = distrax.MixtureSameFamily(
            distrax.Categorical(logits), distrax.Normal(jnp.arange(3.0), jnp.ones(3))
        )
        return (
            mixture.sample(seed=keys[0], sample_shape=5),
            distrax.Gamma(jnp.exp(logits), 2.0).sample(seed=keys[1], sample_shape=5),
            distrax.Beta(jnp.exp(logits), 2.0).sample(seed=keys[2], sample_shape=5),
        )

    return Program(sample, (RNG.normal(size=3).astype(np.float32), np.uint32([0, 3])))
