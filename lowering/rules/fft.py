"""Discrete Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering.avals import is_static, real_dtype
from lowering.ops.dtypes import COMPLEX
from lowering.registry import decomposition, legalization, new_primitive, rule
from lowering.targets import ONNX

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


# A transform along the last axis, of its real and imaginary parts or, for "RFFT", of real numbers.
_FOURIER_TRANSFORM = new_primitive("fourier_transform")
_FOURIER_TRANSFORM.multiple_results = True


@_FOURIER_TRANSFORM.def_abstract_eval
def _parts_of_transform(real, *imag, kind):
    size = real.shape[-1]
    count = size // 2 + 1 if kind == "RFFT" else size
    return [real.update(shape=(*real.shape[:-1], count), weak_type=False)] * 2


@rule("fourier_transform")
def fourier_transform(ctx, real, *imag, kind):
    """The FFT op, with complex numbers joined before it and split after it."""
    if imag:
        made = getattr(tf.raw_ops, kind)(input=tf.complex(real, *imag))
    else:
        dtype = tf.complex64 if real.dtype == tf.float32 else tf.complex128
        made = tf.raw_ops.RFFT(input=real, fft_length=[real.shape[-1]], Tcomplex=dtype)
    return tf.math.real(made), tf.math.imag(made)


@legalization("fft", dtypes=COMPLEX)
def fft_of_parts(x, *, fft_type, fft_lengths):
    """Products with the matrices of the transforms, an axis after the other.

    Programs on devices have short transforms. Matrices of known sizes are constants.
    """
    return _of_axes(x, fft_type, fft_lengths, lambda length: False)


@decomposition("fft", target=ONNX, dtypes=COMPLEX)
def fft_of_parts_onnx(x, *, fft_type, fft_lengths):
    """One op along axes that are long powers of two; other lengths lose two digits by it.

    Row: fourier in `tools/bench_exports.py`.
    """
    shortest = ONNX.shortest_transform

    def has_op(length):
        is_power = is_static([length]) and length > 0 and length & (length - 1) == 0
        return is_power and length >= shortest and 0 not in x.shape

    return _of_axes(x, fft_type, fft_lengths, has_op)


def _of_axes(x, fft_type, fft_lengths, has_op):
    """The transforms along the last axes; `has_op` says along which lengths they are one op."""
    kind = lax.FftType(fft_type).name
    axes = range(x.ndim - len(fft_lengths), x.ndim)
    if kind == "IRFFT":
        for axis, length in list(zip(axes, fft_lengths, strict=True))[:-1]:
            x = _transformed(x, axis, length, "IFFT", has_op)
        return _real_of_half(x, fft_lengths[-1], has_op)
    for axis, length in reversed(list(zip(axes, fft_lengths, strict=True))):
        if kind == "RFFT" and axis == x.ndim - 1:
            x = _half_of_real(x, length, has_op)
        else:
            x = _transformed(x, axis, length, "IFFT" if kind == "IFFT" else "FFT", has_op)
    return x


def _transformed(x, axis, length, kind, has_op):
    """The transform along an axis."""
    if has_op(length):
        moved = jnp.moveaxis(x, axis, -1)
        parts = _FOURIER_TRANSFORM.bind(lax.real(moved), lax.imag(moved), kind=kind)
        return jnp.moveaxis(lax.complex(*parts), -1, axis)
    sign = 1 if kind == "IFFT" else -1
    cos, sin = _roots(length, length, length, real_dtype(x.dtype))
    is_constant = isinstance(cos, np.ndarray)
    matrix = cos + 1j * sign * sin if is_constant else lax.complex(cos, sign * sin)
    result = _along(x, matrix, axis)
    return result / _number(length, real_dtype(x.dtype)) if kind == "IFFT" else result


def _half_of_real(x, length, has_op):
    """The half of the transform of real numbers along the last axis that determines the rest."""
    if has_op(length):
        return lax.complex(*_FOURIER_TRANSFORM.bind(x, kind="RFFT"))
    cos, sin = _roots(length, length, length // 2 + 1, x.dtype)
    return lax.complex(*(_along(x, part, x.ndim - 1) for part in (cos, -sin)))


def _real_of_half(x, length, has_op):
    """The inverse transform along the last axis, from the half of it that determines the rest."""
    count, dtype = length // 2 + 1, real_dtype(x.dtype)
    x = lax.slice_in_dim(x, 0, count, axis=x.ndim - 1)
    if has_op(length // 2):  # The op takes all numbers, which is twice the work.
        rest = lax.conj(jnp.flip(x[..., 1:-1], -1))
        full = lax.concatenate([x, rest], x.ndim - 1)
        return lax.real(_transformed(full, x.ndim - 1, length, "IFFT", has_op))
    cos, sin = _roots(length, count, length, dtype)
    k, size = _numbers_below(count)[:, None], _number(length, np.int32)
    library = np if isinstance(k, np.ndarray) else jnp
    # Each but the first and, of an even length, the last stands for its conjugate, too.
    weights = library.where((k == 0) | (2 * k == size), 1, 2) / _number(length, dtype)
    weights = weights.astype(dtype)
    real = _along(lax.real(x), weights * cos, x.ndim - 1)
    return real - _along(lax.imag(x), weights * sin, x.ndim - 1)


def _roots(length, rows, columns, dtype):
    """The matrices of the cosines and sines of 2 pi j k / length, for j < rows and k < columns.

    They are NumPy arrays if the sizes are known. Else j k is computed in 32 bits, which are enough
    for matrices that fit into memory.
    """
    products = _numbers_below(rows)[:, None] * _numbers_below(columns)[None, :]
    if isinstance(products, np.ndarray):
        angles = 2 * np.pi * (products % length) / length
        return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)
    turns = (products % _number(length, np.int32)).astype(dtype) / _number(length, dtype)
    angles = dtype.type(2 * np.pi) * turns
    return jnp.cos(angles), jnp.sin(angles)


def _numbers_below(size):
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
