"""Discrete Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.avals import is_static, real_dtype
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

    Lengths of programs on devices are short. The matrices of those that are known are constants.
    """
    kind = lax.FftType(fft_type).name
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    if kind == "IRFFT":
        for axis, length in list(zip(axes, fft_lengths, strict=True))[:-1]:
            x = _transformed(x, axis, length, sign=1) / _number(length, real_dtype(x.dtype))
        return _real_of_half(x, fft_lengths[-1])
    sign = 1 if kind == "IFFT" else -1
    for axis, length in reversed(list(zip(axes, fft_lengths, strict=True))):
        if kind == "RFFT" and axis == x.ndim - 1:
            x = _half_of_real(x, length)
        else:
            x = _transformed(x, axis, length, sign)
        if kind == "IFFT":
            x = x / _number(length, real_dtype(x.dtype))
    return x


def _transformed(x, axis, length, sign):
    """The transform along an axis."""
    cos, sin = _roots(length, length, length, real_dtype(x.dtype))
    is_constant = isinstance(cos, np.ndarray)
    matrix = cos + 1j * sign * sin if is_constant else lax.complex(cos, sign * sin)
    return _along(x, matrix, axis)


def _half_of_real(x, length):
    """The half of the transform of real numbers along the last axis that determines the rest."""
    cos, sin = _roots(length, length, length // 2 + 1, x.dtype)
    return lax.complex(*(_along(x, part, x.ndim - 1) for part in (cos, -sin)))


def _real_of_half(x, length):
    """The inverse transform along the last axis, from the half of it that determines the rest."""
    count, dtype = length // 2 + 1, real_dtype(x.dtype)
    x = lax.slice_in_dim(x, 0, count, axis=x.ndim - 1)
    cos, sin = _roots(length, count, length, dtype)
    k, size = _places(count)[:, None], _number(length, np.int32)
    library = np if isinstance(k, np.ndarray) else jnp
    # Each but the first and, of an even length, the last stands for its conjugate, too.
    weights = library.where((k == 0) | (2 * k == size), 1, 2) / _number(length, dtype)
    weights = weights.astype(dtype)
    real = _along(lax.real(x), weights * cos, x.ndim - 1)
    return real - _along(lax.imag(x), weights * sin, x.ndim - 1)


def _roots(length, rows, columns, dtype):
    """Cosines and sines of the roots of unity that elements are multiplied by for results.

    They are arrays of NumPy if the sizes are known. If not, products of two places are of 32 bits,
    in which there is room for those in matrices that fit into memory.
    """
    places = _places(rows)[:, None] * _places(columns)[None, :]
    if isinstance(places, np.ndarray):
        angles = 2 * np.pi * (places % length) / length
        return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    turns = (places % _number(length, np.int32)).astype(dtype) / _number(length, dtype)
    angles = dtype.type(2 * np.pi) * turns
    return jnp.cos(angles), jnp.sin(angles)


def _places(size):
    """The numbers from 0 up to a size, of NumPy if that is known."""
    return np.arange(size) if is_static([size]) else lax.iota(np.int32, size)


def _number(size, dtype):
    """A size as a number of a dtype."""
    return np.dtype(dtype).type(size) if is_static([size]) else jnp.asarray(size).astype(dtype)


def _along(x, matrix, axis):
    """The products of the vectors along an axis with a matrix."""
    dtype = jnp.result_type(x, np.complex64) if np.iscomplexobj(matrix) else x.dtype
    product = jnp.tensordot(x.astype(dtype), matrix.astype(dtype), (axis, 0))
    return jnp.moveaxis(product, -1, axis)
