"""Haiku: transformed functions of parameters and state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.frameworks.checks import check

hk = pytest.importorskip("haiku")

KEY = jax.random.key(0)
IMAGES = np.random.default_rng(0).normal(size=(2, 16, 16, 3)).astype(np.float32)
WORDS = np.random.default_rng(1).integers(0, 20, (2, 7))


def test_a_convolutional_network_with_state():
    @hk.transform_with_state
    def network(images, is_training):
        x = hk.Conv2D(8, 3, stride=2)(images)
        x = hk.BatchNorm(True, True, 0.9)(x, is_training)
        x = hk.max_pool(jax.nn.relu(x), 2, 2, "SAME")
        x = hk.LayerNorm(-1, True, True)(hk.Conv2D(8, 3, padding="VALID")(x))
        return hk.nets.MLP([16, 5])(x.mean((1, 2)))

    params, state = network.init(KEY, IMAGES, True)
    check(
        lambda params, state, x: network.apply(params, state, None, x, True), params, state, IMAGES
    )
    check(
        lambda params, state, x: network.apply(params, state, None, x, False)[0],
        params,
        state,
        IMAGES,
    )


def test_a_recurrent_network():
    @hk.transform
    def network(words):
        x = hk.Embed(20, 6)(words)
        core = hk.DeepRNN([hk.LSTM(8), jax.nn.relu, hk.GRU(5)])
        outputs, state = hk.dynamic_unroll(core, x, core.initial_state(2), time_major=False)
        return hk.BatchApply(hk.Linear(20))(outputs), state

    params = network.init(KEY, WORDS)
    check(lambda params, words: network.apply(params, None, words), params, WORDS)


def test_attention_with_dropout():
    @hk.transform
    def network(words):
        x = hk.Embed(20, 8)(words)
        mask = jnp.tril(jnp.ones((1, 1, 7, 7)))
        y = hk.MultiHeadAttention(2, 4, w_init=hk.initializers.VarianceScaling())(x, x, x, mask)
        y = hk.dropout(hk.next_rng_key(), 0.2, y)
        return hk.LayerNorm(-1, True, True)(x + y)

    params = network.init(KEY, WORDS)
    words_of_key = jax.random.key_data(jax.random.key(3))

    def apply(params, words_of_key, words):
        return network.apply(params, jax.random.wrap_key_data(words_of_key), words)

    check(apply, params, words_of_key, WORDS)
