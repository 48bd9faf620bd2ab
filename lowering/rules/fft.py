"""Discrete Fourier transforms."""

import jax
import tensorflow as tf

from lowering.registry import rule

_SUFFIX = {1: "", 2: "2D", 3: "3D"}


@rule("fft")
def fft(ctx, x, *, fft_type, fft_lengths):
    """One op for each of the four types over up to three axes, the most that XLA has."""
    kind = jax.lax.FftType(fft_type).name
    op = getattr(tf.raw_ops, kind + _SUFFIX[len(fft_lengths)])
    if kind in ("FFT", "IFFT"):
        return op(input=x)
    result = {"Treal": x.dtype.real_dtype}
    if kind == "RFFT":
        result = {"Tcomplex": tf.complex64 if x.dtype == tf.float32 else tf.complex128}
    return op(input=x, fft_length=ctx.shape(fft_lengths), **result)
