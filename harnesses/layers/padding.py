"""Arrays that grow, shrink, turn around and move."""

from collections.abc import Iterator

import jax.numpy as jnp
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, normal

_X = normal(4, 6)
_IMAGES = normal(2, 5, 6, 3)


def _edge(x):
    x = tf.concat([x[:1], x, x[-1:], x[-1:]], 0)
    return tf.concat([x[:, :1], x, x[:, -1:], x[:, -1:]], 1)


def _wrap(x):
    x = tf.concat([x[-1:], x, x[:2]], 0)
    return tf.concat([x[:, -1:], x, x[:, :2]], 1)


def layers() -> Iterator[Layer]:
    """`jnp.pad` in its modes, flips, rolls and slices."""
    for name, widths in {"one side": ((1, 0), (0, 0)), "both sides": ((1, 2), (1, 2))}.items():
        yield Layer(
            f"pad with zeros, {name}",
            lambda x, widths=widths: jnp.pad(x, widths),
            lambda x, widths=widths: tf.pad(x, widths),
            (_X,),
        )
        for mode in ("reflect", "symmetric"):
            yield Layer(
                f"pad, {mode}, {name}",
                lambda x, widths=widths, mode=mode: jnp.pad(x, widths, mode),
                lambda x, widths=widths, mode=mode: tf.pad(x, widths, mode),
                (_X,),
            )
    yield Layer(
        "pad with a constant",
        lambda x: jnp.pad(x, 1, constant_values=2.0),
        lambda x: tf.pad(x, ((1, 1), (1, 1)), constant_values=2.0),
        (_X,),
    )
    for mode in ("reflect", "symmetric"):
        yield Layer(
            f"pad of images, {mode}",
            lambda x, mode=mode: jnp.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), mode),
            lambda x, mode=mode: tf.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), mode),
            (_IMAGES,),
        )
    yield Layer(
        "pad of images, reflect, any batch",
        lambda x: jnp.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), "reflect"),
        lambda x: tf.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), "reflect"),
        (_IMAGES,),
        symbolic=True,
    )
    yield Layer("pad, edge", lambda x: jnp.pad(x, (1, 2), "edge"), _edge, (_X,))
    yield Layer("pad, wrap", lambda x: jnp.pad(x, (1, 2), "wrap"), _wrap, (_X,))
    yield Layer("x[::-1]", lambda x: x[::-1], lambda x: x[::-1], (_X,))
    yield Layer("x[:, ::-1]", lambda x: x[:, ::-1], lambda x: x[:, ::-1], (_X,))
    yield Layer("flip", jnp.flip, lambda x: tf.reverse(x, (0, 1)), (_X,))
    yield Layer(
        "flip of images", lambda x: jnp.flip(x, 2), lambda x: tf.reverse(x, (2,)), (_IMAGES,)
    )
    yield Layer("rot90", jnp.rot90, lambda x: tf.reverse(tf.transpose(x), (0,)), (_X,))
    yield Layer(
        "roll",
        lambda x: jnp.roll(x, 2, 0),
        lambda x: tf.concat([x[-2:], x[:-2]], 0),
        (_X,),
    )
    yield Layer(
        "roll, two axes",
        lambda x: jnp.roll(x, (1, -2), (0, 1)),
        _rolled,
        (_X,),
    )
    yield Layer("x[1:-1, ::2]", lambda x: x[1:-1, ::2], lambda x: x[1:-1, ::2], (_X,))
    yield Layer("x[:, None]", lambda x: x[:, None], lambda x: x[:, None], (_X,))
    yield Layer("x[..., 0]", lambda x: x[..., 0], lambda x: x[..., 0], (_X,))
    yield Layer("x[::-2]", lambda x: x[::-2], lambda x: x[::-2], (_X,))
    yield Layer(
        "crop by a negative pad",
        lambda x: lax.pad(x, jnp.float32(0), ((-1, -1, 0), (0, -2, 0))),
        lambda x: x[1:-1, :-2],
        (_X,),
    )


def _rolled(x):
    x = tf.concat([x[-1:], x[:-1]], 0)
    return tf.concat([x[:, 2:], x[:, :2]], 1)
