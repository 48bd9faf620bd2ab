"""Discrete Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.avals import real_dtype
from lowering.ops.dtypes import COMPLEX
from lowering.registry import legalization, rule

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


@legalization("fft", dtypes=COMPLEX)
def fft_of_parts(x, *, fft_type, fft_lengths):
    """Products with the matrices of the transforms, an axis after the other.

    Lengths are known, and those of programs on devices are short.
    """
    kind = lax.FftType(fft_type).name
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    if kind == "IRFFT":
        for axis, length in list(zip(axes, fft_lengths, strict=True))[:-1]:
            x = _transformed(x, axis, length, sign=1) / real_dtype(x.dtype).type(length)
        return _real_of_half(x, fft_lengths[-1])
    sign = 1 if kind == "IFFT" else -1
    for axis, length in reversed(list(zip(axes, fft_lengths, strict=True))):
        if kind == "RFFT" and axis == x.ndim - 1:
            x = _half_of_real(x, length)
        else:
            x = _transformed(x, axis, length, sign)
        if kind == "IFFT":
            x = x / real_dtype(x.dtype).type(length)
    return x


def _transformed(x, axis, length, sign):
    """The transform along an axis."""
    angles = sign * _angles(length, length)
    return _along(x, np.cos(angles) + 1j * np.sin(angles), axis)


def _half_of_real(x, length):
    """The half of the transform of real numbers along the last axis that determines the rest."""
    angles = _angles(length, length // 2 + 1)
    return lax.complex(*(_along(x, part, x.ndim - 1) for part in (np.cos(angles), -np.sin(angles))))


def _angles(length, count):
    """The angles of the roots of unity that each element is multiplied by for each result."""
    return 2 * np.pi * (np.outer(np.arange(length), np.arange(count)) % length) / length


def _real_of_half(x, length):
    """The inverse transform along the last axis, from the half of it that determines the rest."""
    count = length // 2 + 1
    x = lax.slice_in_dim(x, 0, count, axis=x.ndim - 1)
    k, j = np.arange(count)[:, None], np.arange(length)
    weights = np.where((k == 0) | (2 * k == length), 1, 2) / length
    angles = 2 * np.pi * (k * j % length) / length
    real = _along(lax.real(x), weights * np.cos(angles), x.ndim - 1)
    return real - _along(lax.imag(x), weights * np.sin(angles), x.ndim - 1)


def _along(x, matrix, axis):
    """The products of the vectors along an axis with a matrix."""
    dtype = jnp.result_type(x, np.complex64) if np.iscomplexobj(matrix) else x.dtype
    product = jnp.tensordot(x.astype(dtype), matrix.astype(dtype), (axis, 0))
    return jnp.moveaxis(product, -1, axis)
