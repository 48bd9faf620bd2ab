"""Rows and elements by index, embeddings, and one-hot vectors."""

from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, applied, normal

_TABLE = normal(10, 4)
_I = np.array([[0, 3, 9], [2, 2, 5]], np.int32)


def _counted(i):
    """Indices as JAX takes them: negative ones count from the end, and all are clipped."""
    return tf.math.floormod(tf.clip_by_value(i, -10, 9), 10)


def layers() -> Iterator[Layer]:
    """Functions of indices."""
    table = jnp.asarray(_TABLE)
    fun, variables = applied(nn.Embed(10, 4), _I)
    embedding = variables["params"]["embedding"]
    for symbolic in (False, True):
        batch = ", any batch" if symbolic else ""
        yield Layer(
            f"nn.Embed{batch}",
            fun,
            lambda i: tf.where(
                ((j := _counted(i)) == j)[..., None], tf.gather(embedding, j), np.nan
            ),
            (_I,),
            symbolic,
        )
        yield Layer(
            f"x[i]{batch}",
            lambda i: table[i],
            lambda i: tf.gather(_TABLE, _counted(i)),
            (_I,),
            symbolic,
        )
    yield Layer(
        "take, clip",
        lambda i: jnp.take(table, i, 0, mode="clip"),
        lambda i: tf.gather(_TABLE, tf.clip_by_value(i, 0, 9)),
        (_I,),
    )
    yield Layer(
        "x[i] of known ones",
        lambda x: x[np.array([2, 0])],
        lambda x: tf.gather(x, [2, 0]),
        (_TABLE,),
    )
    yield Layer(
        "x[..., i] of known ones",
        lambda x: x[..., np.array([2, 0])],
        lambda x: tf.gather(x, [2, 0], axis=-1),
        (_TABLE,),
    )
    yield Layer("one-hot", lambda i: jax.nn.one_hot(i, 10), lambda i: tf.one_hot(i, 10), (_I,))
    yield Layer(
        "one-hot of another axis",
        lambda i: jax.nn.one_hot(i, 10, axis=1),
        lambda i: tf.one_hot(i, 10, axis=1),
        (_I,),
    )
    yield Layer(
        "x[argmax]", lambda x: x[x.argmax(0)], lambda x: tf.gather(x, tf.argmax(x, 0)), (_TABLE,)
    )
    yield Layer(
        "take_along_axis",
        lambda x, i: jnp.take_along_axis(x, i, 1, mode="clip"),
        lambda x, i: tf.gather(x, tf.clip_by_value(i, 0, 3), axis=1, batch_dims=1),
        (normal(2, 4), _I),
    )
    yield Layer(
        "x.at[1].set",
        lambda x, y: x.at[1].set(y),
        lambda x, y: tf.tensor_scatter_nd_update(x, [[1]], y[None]),
        (_TABLE, normal(4)),
    )
    yield Layer(
        "segment sum",
        lambda x: jax.ops.segment_sum(x, np.array([0, 1, 0, 1, 2, 2, 0, 1, 2, 0]), 3),
        lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 0, 1, 2, 2, 0, 1, 2, 0], 3),
        (_TABLE,),
    )
    yield Layer(
        "cross entropy",
        lambda x, i: -jnp.sum(jax.nn.log_softmax(x) * jax.nn.one_hot(i, 4), -1),
        lambda x, i: -tf.reduce_sum(tf.nn.log_softmax(x) * tf.one_hot(i, 4), -1),
        (normal(3, 4), np.array([0, 3, 1], np.int32)),
    )
