"""Trains the model of the demo on scikit-learn's digits.

A digit of 8x8 pixels becomes a drawing as people make them on the page, of other slant, proportions
and thickness each time. The model sees it the way it sees what is drawn there.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tqdm
from jax.scipy import ndimage
from sklearn.datasets import load_digits

from tools.demo import digits

STEPS = 1200
_BATCH = 128
# The sides of a varied drawing, in points; a point is a square of pixels.
_POINTS = 32
# How many of the last digits are kept from training.
_TESTED = 360


class Digits(NamedTuple):
    """Digits, float32 [n, 8, 8] in 0..16, and what they are, int32 [n]."""

    images: np.ndarray
    labels: np.ndarray


def load() -> tuple[Digits, Digits]:
    """Returns the digits to train with, and those to test with."""
    data = load_digits()
    images, labels = data.images.astype(np.float32), data.target.astype(np.int32)
    first = len(labels) - _TESTED
    return Digits(images[:first], labels[:first]), Digits(images[first:], labels[first:])


def as_drawing(digit: jax.Array) -> jax.Array:
    """A digit of 8x8 pixels as a drawing whose pixels are the digit's, each as a square."""
    side = digits.DRAWING // digits.DIGIT
    return jnp.repeat(jnp.repeat(digit / digits.LEVELS, side, 0), side, 1)


def train(steps: int = STEPS, seed: int = 0) -> dict:
    """Returns the parameters of a model after so many steps."""
    data, _ = load()
    params = digits.init(seed)
    optimizer = optax.adam(optax.cosine_decay_schedule(2e-3, steps))
    state = optimizer.init(params)
    step = jax.jit(functools.partial(_step, optimizer))
    for key in tqdm.tqdm(jax.random.split(jax.random.key(seed), steps), desc="training"):
        params, state = step(params, state, key, *data)
    return params


@jax.jit
def accuracy(params: dict, images: jax.Array, labels: jax.Array) -> jax.Array:
    """The share of digits that are recognized when they are drawn."""

    def answer(image):
        return jnp.argmax(digits.predict(params, as_drawing(image))["probabilities"])

    return jnp.mean(jax.vmap(answer)(images) == labels)


def _step(optimizer, params, state, key, images, labels):
    key_chosen, key_drawn = jax.random.split(key)
    chosen = jax.random.randint(key_chosen, (_BATCH,), 0, len(labels))
    keys = jax.random.split(key_drawn, _BATCH)
    seen = jax.vmap(_varied)(keys, images[chosen], labels[chosen])

    def loss(params):
        logits = jax.vmap(digits.logits, (None, 0))(params, seen)
        wanted = optax.smooth_labels(jax.nn.one_hot(labels[chosen], 10), 0.02)
        return optax.softmax_cross_entropy(logits, wanted).mean()

    updates, state = optimizer.update(jax.grad(loss)(params), state)
    return optax.apply_updates(params, updates), state


def _varied(key: jax.Array, digit: jax.Array, label: jax.Array) -> jax.Array:
    """A digit as somebody else would have drawn it, float32 [8, 8] in 0..16."""
    keys = iter(jax.random.split(key, 12))

    def uniform(low, high, shape=()):
        return jax.random.uniform(next(keys), shape, minval=low, maxval=high)

    # Where each point of the drawing comes from, in pixels of the digit around its centre.
    turn, slant = uniform(-0.25, 0.25), uniform(-0.35, 0.35)
    width, height = 1 / uniform(0.55, 1.0), 1 / uniform(0.65, 1.0)
    turned = jnp.array([[jnp.cos(turn), -jnp.sin(turn)], [jnp.sin(turn), jnp.cos(turn)]])
    linear = jnp.diag(jnp.array([height, width])) @ jnp.array([[1.0, 0.0], [slant, 1.0]]) @ turned
    positions = (jnp.arange(_POINTS) + 0.5) * digits.DIGIT / _POINTS
    grid = jnp.stack(jnp.meshgrid(positions, positions, indexing="ij")) - digits.DIGIT / 2
    bends = jax.image.resize(uniform(-0.9, 0.9, (2, 4, 4)), grid.shape, "cubic")
    source = jnp.tensordot(linear, grid, 1) + bends + digits.DIGIT / 2

    # Edges are smooth at first, so that the threshold decides how thick the strokes are.
    fine = jax.image.resize(jnp.pad(digit / digits.LEVELS, 2), (_POINTS, _POINTS), "cubic")
    is_ours = (label == 1) & (uniform(0, 1) < 0.6)
    fine = jnp.where(is_ours, _one(uniform(0, 3), jax.nn.relu(uniform(-1.5, 3))), fine)
    scale = _POINTS / (digits.DIGIT + 4)
    drawn = ndimage.map_coordinates(fine, list((source + 2) * scale - 0.5), order=1)
    sharp = jnp.clip((drawn - uniform(0.2, 0.65)) * uniform(3.0, 12.0) + 0.5, 0, 1)
    is_drawn = jnp.max(sharp) > 0.9
    side = digits.DRAWING // _POINTS
    drawing = jnp.repeat(jnp.repeat(sharp, side, 0), side, 1)
    return digits.as_digit(jnp.where(is_drawn, drawing, as_drawing(digit)))


def _one(flag: jax.Array, foot: jax.Array) -> jax.Array:
    """A one of thin strokes, float32 [32, 32], as a digit of 8x8 pixels with a margin of 2 pixels.

    The ones of scikit-learn are broad, and none stands on a foot.

    Args:
      flag: how far the upstroke goes down, in pixels.
      foot: how far the foot goes to each side, in pixels.
    """
    positions = (jnp.arange(_POINTS) + 0.5) * (digits.DIGIT + 4) / _POINTS - 2
    points = jnp.stack(jnp.meshgrid(positions, positions, indexing="ij"), -1)
    middle, last = digits.DIGIT / 2, digits.DIGIT - 0.75
    top, bottom = jnp.array([0.75, middle]), jnp.array([last, middle])
    side = jnp.stack([jnp.zeros_like(foot), foot])
    strokes = (
        (top, bottom),
        (top, top + jnp.stack([flag, -0.8 * flag])),
        (bottom - side, bottom + side),
    )
    distances = [_distance(points, *stroke) for stroke in strokes]
    return jnp.clip(1.1 - 0.7 * functools.reduce(jnp.minimum, distances), 0, 1)


def _distance(points: jax.Array, start: jax.Array, end: jax.Array) -> jax.Array:
    """The distance of each of many points, [..., 2], from a line between two."""
    along = end - start
    share = (points - start) @ along / jnp.maximum(along @ along, 1e-6)
    return jnp.linalg.norm(points - start - jnp.clip(share, 0, 1)[..., None] * along, axis=-1)
