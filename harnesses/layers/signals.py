"""Fourier transforms and windows."""

from collections.abc import Iterator

import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from harnesses.layers.layer import Layer, normal

_X = normal(2, 16)


def layers() -> Iterator[Layer]:
    """Windows, Fourier transforms and other steps of a spectrogram."""
    yield Layer(
        "power spectrum",
        lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2,
        lambda x: tf.square(tf.abs(tf.signal.rfft(x))),
        (_X,),
    )
    window = np.hanning(16).astype(np.float32)
    yield Layer(
        "windowed spectrum",
        lambda x: jnp.abs(jnp.fft.rfft(x * window)),
        lambda x: tf.abs(tf.signal.rfft(x * window)),
        (_X,),
    )
    yield Layer(
        "spectrum of real numbers",
        lambda x: jnp.real(jnp.fft.rfft(x)),
        lambda x: tf.math.real(tf.signal.rfft(x)),
        (_X,),
    )
