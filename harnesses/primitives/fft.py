"""Discrete Fourier transforms."""

import numpy as np
from jax import lax

from harnesses.arguments import name, random
from harnesses.axes import axes_but, every_axis
from harnesses.compare import Comparison
from harnesses.harness import Harness, harnesses


def _close(expected, actual, args):
    """Compares relative to the norm of the result: that is the error bound of an FFT."""
    (e,), (a,) = expected, actual
    if not np.all(np.isfinite(e)):
        same = np.all(np.isnan(e) <= np.isnan(a))
        return Comparison(bool(same), 0.0 if same else np.inf, "" if same else "NaN is lost")
    error = float(np.max(np.abs(e - a), initial=0))
    tolerated = 4 * float(np.finfo(e.dtype).eps) * float(np.linalg.norm(e.ravel()))
    ratio = error / tolerated if error else 0.0
    return Comparison(ratio <= 1, ratio, f"off by {error:.3g}, {tolerated:.3g} is tolerated")


def _harness(kind, x, lengths, case):
    def transform(x):
        sizes = x.shape[x.ndim - len(lengths) :]
        return lax.fft(x, kind, (*sizes[:-1], lengths[-1]) if kind == "IRFFT" else sizes)

    params = {"fft_type": kind, "fft_lengths": lengths}
    axes = axes_but(-1) if kind == "IRFFT" else every_axis
    return Harness("fft", f"{kind}_{case}", transform, (x,), _close, params=params, symbolic=axes)


def _input_shape(kind, batch, lengths):
    if kind == "IRFFT":
        lengths = (*lengths[:-1], lengths[-1] // 2 + 1)
    return (*batch, *lengths)


@harnesses
def fft():
    cases = (
        ((), (8,)),
        ((2, 3), (7,)),
        ((), (1,)),
        ((0,), (4,)),
        ((), (4, 6)),
        ((2,), (3, 5)),
        ((), (2, 3, 4)),
        ((2,), (3, 1, 5)),
        ((), (97,)),
        ((), (1024,)),
        ((2, 1), (1024,)),
        ((2,), (1024, 2)),
    )
    for kind in ("FFT", "IFFT", "RFFT", "IRFFT"):
        dtypes = (np.float32, np.float64) if kind == "RFFT" else (np.complex64, np.complex128)
        for dtype in dtypes:
            for batch, lengths in cases:
                x = random(_input_shape(kind, batch, lengths), dtype)
                yield _harness(kind, x, lengths, f"{batch=}_{lengths=}_{name(dtype)}")
            # JAX has no real transforms whose last length is zero.
            for lengths in ((0,), (2, 0), (0, 2)) if "R" not in kind else ((0, 2),):
                x = np.zeros(_input_shape(kind, (2,), lengths), dtype)
                yield _harness(kind, x, lengths, f"empty_{lengths=}_{name(dtype)}")
            nan = random(_input_shape(kind, (2,), (4,)), dtype)
            yield _harness(
                kind, lambda rng, nan=nan: _with_nan(nan(rng)), (4,), f"nan_{name(dtype)}"
            )


def _with_nan(x):
    x[0, 1] = np.nan
    return x
