"""Steps of recurrent networks."""

from collections.abc import Iterator

import flax.linen as nn
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, applied, normal

_X = normal(3, 4)
_H, _C = normal(3, 6, seed=1), normal(3, 6, seed=2)


def _joined(params, gates, kind):
    return np.concatenate([params[f"{kind}{gate}"]["kernel"] for gate in gates], 1)


def layers() -> Iterator[Layer]:
    """Cells of Flax."""
    cell, variables = applied(nn.LSTMCell(6), (_C, _H), _X)
    lstm = variables["params"]
    kernel = np.concatenate([_joined(lstm, "ifgo", kind) for kind in "ih"])
    bias = np.concatenate([lstm[f"h{gate}"]["bias"] for gate in "ifgo"])

    def lstm_by_hand(c, h, x):
        i, f, g, o = tf.split(tf.matmul(tf.concat([x, h], 1), kernel) + bias, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        return c, tf.sigmoid(o) * tf.tanh(c)

    def lstm_step(c, h, x):
        return cell((c, h), x)[0]

    yield Layer("LSTM cell", lstm_step, lstm_by_hand, (_C, _H, _X))
    cell_gru, variables = applied(nn.GRUCell(6), _H, _X)
    gru = variables["params"]
    of_x, of_h = _joined(gru, "rzn", "i"), _joined(gru, "rzn", "h")
    biases = np.concatenate([gru[f"i{gate}"]["bias"] for gate in "rzn"])

    def gru_by_hand(h, x):
        r, z, n = tf.split(tf.matmul(x, of_x) + biases, 3, 1)
        hr, hz, hn = tf.split(tf.matmul(h, of_h), 3, 1)
        r, z = tf.sigmoid(r + hr), tf.sigmoid(z + hz)
        n = tf.tanh(n + r * (hn + gru["hn"]["bias"]))
        return (1 - z) * n + z * h

    yield Layer("GRU cell", lambda h, x: cell_gru(h, x)[0], gru_by_hand, (_H, _X))
    cell_simple, variables = applied(nn.SimpleCell(6), _H, _X)
    simple = variables["params"]
    yield Layer(
        "simple cell",
        lambda h, x: cell_simple(h, x)[0],
        lambda h, x: tf.tanh(
            tf.matmul(x, simple["i"]["kernel"])
            + simple["i"]["bias"]
            + tf.matmul(h, simple["h"]["kernel"])
        ),
        (_H, _X),
    )
    minimal, variables = applied(nn.MGUCell(6), _H, _X)
    mgu = variables["params"]

    def minimal_by_hand(h, x):
        f = tf.sigmoid(_dense(x, mgu["if"]) + tf.matmul(h, mgu["hf"]["kernel"]))
        n = tf.tanh(_dense(x, mgu["in"]) + f * _dense(h, mgu["hn"]))
        return (1 - f) * n + f * h

    yield Layer("MGU cell", lambda h, x: minimal(h, x)[0], minimal_by_hand, (_H, _X))
    images, state = normal(2, 6, 6, 3), normal(2, 6, 6, 4)
    conv_lstm, variables = applied(nn.ConvLSTMCell(4, (3, 3)), (state, state), images)
    of_images = variables["params"]

    def conv(x, params):
        return tf.nn.conv2d(x, params["kernel"], 1, "SAME") + params["bias"]

    def conv_lstm_by_hand(c, h, x):
        gates = conv(x, of_images["ih"]) + conv(h, of_images["hh"])
        i, g, f, o = tf.split(gates, 4, -1)
        c = tf.sigmoid(f + 1) * c + tf.sigmoid(i) * tf.tanh(g)
        return c, tf.sigmoid(o) * tf.tanh(c)

    yield Layer(
        "convolutional LSTM cell",
        lambda c, h, x: conv_lstm((c, h), x)[0],
        conv_lstm_by_hand,
        (state, normal(2, 6, 6, 4, seed=1), images),
    )


def _dense(x, params):
    return tf.matmul(x, params["kernel"]) + params["bias"]
