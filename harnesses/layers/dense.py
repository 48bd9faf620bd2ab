"""Products of matrices."""

from collections.abc import Iterator

import flax.linen as nn
import jax
import jax.numpy as jnp
import tensorflow as tf

from harnesses.layers.layer import Layer, applied, normal

_X = normal(3, 8)
_SEQUENCES = normal(2, 5, 8)
_W = normal(8, 6)
_B = normal(6)


def _dense(x):
    return tf.matmul(x, _W) + _B


def _dense_of_sequences(x):
    flat = tf.matmul(tf.reshape(x, (10, 8)), _W) + _B
    return tf.reshape(flat, (2, 5, 6))


def _mlp(x, *weights):
    *hidden, (w, b) = weights
    for kernel, bias in hidden:
        x = tf.nn.relu(tf.matmul(x, kernel) + bias)
    return tf.matmul(x, w) + b


def layers() -> Iterator[Layer]:
    """Dense layers, and einsum in its common forms."""
    weights = [
        (normal(8, 16), normal(16)),
        (normal(16, 16), normal(16)),
        (normal(16, 3), normal(3)),
    ]

    def mlp(x):
        for w, b in weights[:-1]:
            x = jax.nn.relu(x @ w + b)
        return x @ weights[-1][0] + weights[-1][1]

    for symbolic in (False, True):
        batch = ", any batch" if symbolic else ""
        yield Layer(f"dense{batch}", lambda x: x @ _W + _B, _dense, (_X,), symbolic)
        yield Layer(
            f"dense and relu{batch}",
            lambda x: jax.nn.relu(x @ _W + _B),
            lambda x: tf.nn.relu(_dense(x)),
            (_X,),
            symbolic,
        )
        yield Layer(f"MLP{batch}", mlp, lambda x: _mlp(x, *weights), (_X,), symbolic)
    yield Layer("dense of a vector", lambda x: x @ _W + _B, _dense_of_vector, (_X[0],))
    yield Layer("dense of sequences", lambda x: x @ _W + _B, _dense_of_sequences, (_SEQUENCES,))
    yield Layer(
        "dense of sequences, any batch",
        lambda x: x @ _W + _B,
        lambda x: tf.reshape(tf.matmul(tf.reshape(x, (-1, 8)), _W) + _B, (-1, 5, 6)),
        (_SEQUENCES,),
        symbolic=True,
    )
    module, variables = applied(nn.Dense(6), _X)
    kernel, bias = variables["params"]["kernel"], variables["params"]["bias"]
    yield Layer("nn.Dense", module, lambda x: tf.matmul(x, kernel) + bias, (_X,))
    yield Layer("nn.Dense, any batch", module, lambda x: tf.matmul(x, kernel) + bias, (_X,), True)
    general, variables = applied(nn.DenseGeneral((2, 3)), _X)
    wide, biases = variables["params"]["kernel"], variables["params"]["bias"]
    yield Layer(
        "nn.DenseGeneral",
        general,
        lambda x: tf.reshape(tf.matmul(x, wide.reshape(8, 6)), (-1, 2, 3)) + biases,
        (_X,),
    )
    y = normal(2, 8, 3)
    heads, others = normal(2, 5, 4, 3), normal(2, 7, 4, 3)
    einsums = {
        "ij,jk->ik": ((_X, _W), tf.matmul),
        "ij,kj->ik": ((_X, normal(4, 8)), lambda x, y: tf.matmul(x, y, transpose_b=True)),
        "ji,jk->ik": ((_X, normal(3, 5)), lambda x, y: tf.matmul(x, y, transpose_a=True)),
        "bij,bjk->bik": ((_SEQUENCES, y), tf.matmul),
        "bij,jk->bik": (
            (_SEQUENCES, _W),
            lambda x, y: tf.reshape(tf.matmul(tf.reshape(x, (10, 8)), y), (2, 5, 6)),
        ),
        "i,i->": ((_X[0], _X[1]), lambda x, y: tf.reduce_sum(x * y)),
        "ij,ij->i": ((_X, _X + 1), lambda x, y: tf.reduce_sum(x * y, -1)),
        "i,j->ij": ((_X[0], _B), lambda x, y: tf.reshape(x, (8, 1)) * y),
        "ij->ji": ((_X,), tf.transpose),
        "ij->j": ((_X,), lambda x: tf.reduce_sum(x, 0)),
        "ii->i": ((normal(4, 4),), tf.linalg.diag_part),
        "bqhd,bkhd->bhqk": (
            (heads, others),
            lambda q, k: tf.matmul(tf.transpose(q, (0, 2, 1, 3)), tf.transpose(k, (0, 2, 3, 1))),
        ),
        "bhqk,bkhd->bqhd": (
            (normal(2, 4, 5, 7), others),
            lambda w, v: tf.transpose(tf.matmul(w, tf.transpose(v, (0, 2, 1, 3))), (0, 2, 1, 3)),
        ),
    }
    for form, (args, by_hand) in einsums.items():
        yield Layer(f"einsum {form}", lambda *xs, form=form: jnp.einsum(form, *xs), by_hand, args)
    yield Layer("x @ x.T", lambda x: x @ x.T, lambda x: tf.matmul(x, x, transpose_b=True), (_X,))
    yield Layer(
        "low rank",
        lambda x: x @ _W + (x @ normal(8, 2)) @ normal(2, 6),
        lambda x: tf.matmul(x, _W) + tf.matmul(tf.matmul(x, normal(8, 2)), normal(2, 6)),
        (_X,),
    )


def _dense_of_vector(x):
    return tf.reshape(tf.matmul(tf.reshape(x, (1, 8)), _W), (6,)) + _B
