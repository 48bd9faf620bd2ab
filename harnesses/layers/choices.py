"""Elements that are chosen by computed indices: tokens, classes, the best of many."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.layers.layer import Layer, normal

_LOGITS = normal(3, 10)
_CLASSES = np.array([1, 2, 9], np.int32)
_SEQUENCES = normal(2, 5, 16)
_LENGTHS = np.array([3, 5], np.int32)
_PRESENT = np.array([[True] * 3 + [False] * 2, [True] * 5])


def _from_end(index, size):
    """Indices as JAX takes them: negative ones count from the end, others are clipped."""
    return tf.math.floormod(tf.clip_by_value(index, -size, size - 1), size)


def _by_tokens() -> Iterator[Layer]:
    yield Layer(
        "last tokens of known lengths",
        lambda x, n: x[jnp.arange(2), n - 1],
        lambda x, n: tf.gather(x, _from_end(n - 1, 5), batch_dims=1),
        (_SEQUENCES, _LENGTHS),
    )
    yield Layer(
        "mask of known lengths",
        lambda n: jnp.arange(8) < n[:, None],
        lambda n: np.arange(8, dtype=np.int32) < n[:, None],
        (_LENGTHS,),
    )
    yield Layer(
        "mean of present tokens",
        lambda x, present: (
            (x * present[..., None]).sum(1) / present.astype(np.float32).sum(1, keepdims=True)
        ),
        _mean_of_present,
        (_SEQUENCES, _PRESENT),
    )
    table = normal(10, 16)
    yield Layer(
        "bags of embeddings",
        lambda i: jnp.asarray(table)[i].sum(1),
        lambda i: tf.reduce_sum(tf.gather(table, _from_end(i, 10)), 1),
        (np.arange(10, dtype=np.int32).reshape(2, 5),),
    )
    yield Layer(
        "vmap of x[i]",
        jax.vmap(lambda x, i: x[i]),
        lambda x, i: tf.gather(x, _from_end(i, 5), batch_dims=1),
        (_SEQUENCES, np.array([[1, 2], [0, 4]], np.int32)),
    )
    codes = normal(4, 16)
    yield Layer(
        "nearest codes",
        lambda x: jnp.asarray(codes)[jnp.argmin(((x[:, None] - codes) ** 2).sum(-1), -1)],
        lambda x: tf.gather(
            codes,
            tf.argmin(
                tf.reduce_sum(tf.math.squared_difference(x[:, None], codes), -1),
                -1,
                output_type=tf.int32,
            ),
        ),
        (_SEQUENCES[0],),
    )


def _mean_of_present(x, present):
    weights = tf.cast(present, tf.float32)[..., None]
    return tf.reduce_sum(x * weights, 1) / tf.reduce_sum(weights, 1)


def _by_scores() -> Iterator[Layer]:
    yield Layer(
        "accuracy",
        lambda x, classes: (x.argmax(-1) == classes).mean(),
        lambda x, classes: tf.reduce_mean(
            tf.cast(tf.equal(tf.argmax(x, -1, tf.int32), classes), tf.float32)
        ),
        (_LOGITS, _CLASSES),
    )
    yield Layer(
        "greedy token",
        lambda x: jnp.argmax(x[:, -1], -1),
        lambda x: tf.argmax(x[:, -1], -1, tf.int32),
        (_SEQUENCES,),
    )
    yield Layer(
        "rows of the greatest",
        lambda x: jnp.take_along_axis(x, jnp.argmax(x, -1, keepdims=True), -1),
        lambda x: tf.gather(x, tf.argmax(x, -1, tf.int32)[:, None], batch_dims=1),
        (_LOGITS,),
    )
    yield Layer(
        "rows of the k greatest",
        lambda x: jnp.take_along_axis(2 * x, lax.top_k(x, 3)[1], -1),
        lambda x: tf.gather(2 * x, tf.math.top_k(x, 3)[1], batch_dims=1),
        (_LOGITS,),
    )
    yield Layer(
        "cross entropy of one-hot classes",
        lambda x, classes: -(jax.nn.one_hot(classes, 10) * jax.nn.log_softmax(x)).sum(-1).mean(),
        lambda x, classes: (
            -tf.reduce_mean(tf.reduce_sum(tf.one_hot(classes, 10) * tf.nn.log_softmax(x), -1))
        ),
        (_LOGITS, _CLASSES),
    )
    yield Layer(
        "cross entropy of an index",
        lambda x, classes: -jax.nn.log_softmax(x)[jnp.arange(3), classes].mean(),
        lambda x, classes: (
            -tf.reduce_mean(tf.gather(tf.nn.log_softmax(x), _from_end(classes, 10), batch_dims=1))
        ),
        (_LOGITS, _CLASSES),
    )


def layers() -> Iterator[Layer]:
    """Choices by places that are given, and by places that are found."""
    yield from _by_tokens()
    yield from _by_scores()
