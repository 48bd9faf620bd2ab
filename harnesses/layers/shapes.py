"""Shapes: joined, split, transposed, repeated, and pixels that become channels."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_X = normal(4, 6)
_IMAGES = normal(2, 4, 4, 8)
_KERNEL = normal(4, 8, 3)


def _to_space(x):
    b, h, w, c = x.shape
    return (
        x.reshape(b, h, w, 2, 2, c // 4)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(b, 2 * h, 2 * w, c // 4)
    )


def _to_depth(x):
    b, h, w, c = x.shape
    return (
        x.reshape(b, h // 2, 2, w // 2, 2, c)
        .transpose(0, 1, 3, 2, 4, 5)
        .reshape(b, h // 2, w // 2, 4 * c)
    )


def _upsampled(x):
    return jnp.repeat(jnp.repeat(x, 2, 1), 2, 2)


def layers() -> Iterator[Layer]:
    """Functions that move elements."""
    yield Layer(
        "concatenate", lambda x: jnp.concatenate([x, x], 1), lambda x: tf.concat([x, x], 1), (_X,)
    )
    yield Layer("stack", lambda x: jnp.stack([x, x]), lambda x: tf.stack([x, x]), (_X,))
    yield Layer("split", lambda x: jnp.split(x, 2, 1), lambda x: tf.split(x, 2, 1), (_X,))
    yield Layer("reshape", lambda x: x.reshape(8, 3), lambda x: tf.reshape(x, (8, 3)), (_X,))
    yield Layer(
        "flatten, any batch",
        lambda x: x.reshape(x.shape[0], -1),
        lambda x: tf.reshape(x, (-1, 128)),
        (_IMAGES,),
        symbolic=True,
    )
    yield Layer("transpose", jnp.transpose, tf.transpose, (_X,))
    yield Layer(
        "NHWC to NCHW",
        lambda x: x.transpose(0, 3, 1, 2),
        lambda x: tf.transpose(x, (0, 3, 1, 2)),
        (_IMAGES,),
    )
    yield Layer(
        "swapaxes", lambda x: x.swapaxes(1, 2), lambda x: tf.transpose(x, (0, 2, 1, 3)), (_IMAGES,)
    )
    yield Layer("tile", lambda x: jnp.tile(x, (2, 3)), lambda x: tf.tile(x, (2, 3)), (_X,))
    yield Layer(
        "repeat",
        lambda x: jnp.repeat(x, 2, 0),
        lambda x: tf.reshape(tf.tile(tf.reshape(x, (4, 1, 6)), (1, 2, 1)), (8, 6)),
        (_X,),
    )
    yield Layer(
        "broadcast",
        lambda x: jnp.broadcast_to(x, (3, 4, 6)),
        lambda x: tf.broadcast_to(x, (3, 4, 6)),
        (_X,),
    )
    yield Layer("squeeze", lambda x: x.squeeze(0), lambda x: tf.squeeze(x, 0), (_X[None],))
    yield Layer("pixel shuffle", _to_space, lambda x: tf.nn.depth_to_space(x, 2), (_IMAGES,))
    yield Layer("pixel unshuffle", _to_depth, lambda x: tf.nn.space_to_depth(x, 2), (_IMAGES,))
    yield Layer(
        "pixel shuffle, any batch",
        _to_space,
        lambda x: tf.nn.depth_to_space(x, 2),
        (_IMAGES,),
        symbolic=True,
    )
    yield Layer(
        "upsampling by repetition",
        _upsampled,
        lambda x: tf.image.resize(x, (8, 8), "nearest"),
        (_IMAGES,),
    )
    for method in ("nearest", "bilinear"):
        yield Layer(
            f"resize, {method}",
            lambda x, method=method: jax.image.resize(x, (2, 8, 8, 8), method),
            lambda x, method=method: tf.image.resize(x, (8, 8), method),
            (_IMAGES,),
        )
    for name, size, method in (
        ("resize to odd sizes, bilinear", (7, 9), "bilinear"),
        ("resize of rows", (7, 4), "bilinear"),
    ):
        yield Layer(
            name,
            lambda x, method=method, size=size: jax.image.resize(x, (2, *size, 8), method),
            lambda x, method=method, size=size: tf.image.resize(x, size, method),
            (_IMAGES,),
        )
    yield Layer(
        "resize to a half, antialiased",
        lambda x: jax.image.resize(x, (2, 2, 2, 8), "bilinear"),
        lambda x: tf.image.resize(x, (2, 2), "bilinear", antialias=True),
        (_IMAGES,),
    )
    yield Layer(
        "resize, cubic",
        lambda x: jax.image.resize(x, (2, 8, 8, 8), "cubic"),
        lambda x: tf.image.resize(x, (8, 8), "bicubic"),
        (_IMAGES,),
    )
    yield Layer(
        "resize, any batch",
        lambda x: jax.image.resize(x, (x.shape[0], 8, 8, 8), "bilinear"),
        lambda x: tf.image.resize(x, (8, 8), "bilinear"),
        (_IMAGES,),
        symbolic=True,
    )
    yield Layer(
        "tril", jnp.tril, lambda x: tf.where(np.tri(6, dtype=bool), x, 0.0), (normal(6, 6),)
    )
    yield Layer(
        "triu", jnp.triu, lambda x: tf.where(~np.tri(6, k=-1, dtype=bool), x, 0.0), (normal(6, 6),)
    )
    yield Layer("expand_dims", lambda x: x[:, None], lambda x: tf.expand_dims(x, 1), (_X,))
    yield Layer("ravel", jnp.ravel, lambda x: tf.reshape(x, (24,)), (_X,))
    yield Layer("hstack", lambda x: jnp.hstack([x, x]), lambda x: tf.concat([x, x], 1), (_X,))
    yield Layer("dstack", lambda x: jnp.dstack([x, x]), lambda x: tf.stack([x, x], 2), (_X,))
    yield Layer("unstack", lambda x: jnp.unstack(x), lambda x: tf.unstack(x), (_X,))
    yield Layer(
        "tensordot",
        lambda x: jnp.tensordot(x, _KERNEL, 2),
        lambda x: tf.matmul(tf.reshape(x, (2, 32)), _KERNEL.reshape(32, 3)),
        (normal(2, 4, 8),),
    )
    yield Layer("diag", jnp.diag, tf.linalg.diag_part, (normal(6, 6),))
    yield Layer(
        "eye", lambda x: x + jnp.eye(6), lambda x: x + np.eye(6, dtype=np.float32), (normal(6, 6),)
    )
    yield Layer(
        "arange", lambda x: x + jnp.arange(6), lambda x: x + np.arange(6, dtype=np.float32), (_X,)
    )
    yield Layer("meshgrid", lambda x: jnp.meshgrid(x, x), lambda x: tf.meshgrid(x, x), (_X[0],))
    yield Layer(
        "where", lambda x: jnp.where(x > 0, x, -1.0), lambda x: tf.where(x > 0, x, -1.0), (_X,)
    )
    yield Layer("outer", jnp.outer, lambda x, y: tf.reshape(x, (6, 1)) * y, (_X[0], _X[1]))
