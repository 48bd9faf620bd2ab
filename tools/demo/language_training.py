"""Trains the language model of the demo on what Python says of itself: the texts of `help`."""

import functools
import pydoc_data.topics
import re

import jax
import numpy as np
import optax
import tqdm

from tools.demo import writing

STEPS = 500
_BATCH = 12
# What tables and headings are drawn with.
_LINES = re.compile(r"[-=+~^*]{3,}|\|")
# How many of the last characters are kept from training.
_TESTED = 20_000


def load() -> tuple[np.ndarray, np.ndarray]:
    """Returns the characters to train with, and those to test with, as int32."""
    topics = pydoc_data.topics.topics
    text = _LINES.sub(" ", " ".join(topics[name] for name in sorted(topics)))
    text = " ".join(text.split())
    tokens = np.frombuffer(text.encode("ascii", "ignore"), np.uint8).astype(np.int32)
    return tokens[:-_TESTED], tokens[-_TESTED:]


def train(steps: int = STEPS, seed: int = 0) -> dict:
    """Returns the parameters of a model after so many steps."""
    tokens, _ = load()
    params = writing.init(seed)
    schedule = optax.warmup_cosine_decay_schedule(0, 5e-3, min(50, steps // 2), steps)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(schedule, b2=0.99))
    state = optimizer.init(params)
    step = jax.jit(functools.partial(_step, optimizer), donate_argnums=(0, 1))
    rng = np.random.default_rng(seed)
    length = writing.CAPACITY
    for _ in tqdm.tqdm(range(steps), desc="training the language model"):
        starts = rng.integers(len(tokens) - length, size=(_BATCH, 1))
        params, state = step(params, state, tokens[starts + np.arange(length)])
    return params


def perplexity(params: dict) -> float:
    """The perplexity of characters that training has not seen; 128 for a uniform guess."""
    _, tested = load()
    count = len(tested) // writing.CAPACITY
    texts = tested[: count * writing.CAPACITY].reshape(count, writing.CAPACITY)
    return float(np.exp(jax.jit(_loss)(params, texts)))


def _loss(params, texts):
    logits = jax.vmap(writing.logits, (None, 0))(params, texts)
    return optax.softmax_cross_entropy_with_integer_labels(logits[:, :-1], texts[:, 1:]).mean()


def _step(optimizer, params, state, texts):
    updates, state = optimizer.update(jax.grad(_loss)(params, texts), state)
    return optax.apply_updates(params, updates), state
