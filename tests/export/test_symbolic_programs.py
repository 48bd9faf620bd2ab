"""Programs of matrices and of complex numbers whose sizes are symbolic, in runtimes."""

import jax
import jax.numpy as jnp
import jax.scipy.signal
import numpy as np
import pytest

from lowering import export
from lowering.targets import CONSUMERS


def _positive(x):
    return x @ x.T + 4 * jnp.eye(x.shape[0], dtype=x.dtype)


# Functions of a matrix, and its shape.
PROGRAMS = {
    "inverse": (lambda x: jnp.linalg.inv(x + 9 * jnp.eye(x.shape[0])), "b, b"),
    "cholesky": (lambda x: jnp.linalg.cholesky(_positive(x)), "b, 4"),
    "eigenvalues": (lambda x: jnp.linalg.eigvalsh(x + x.T), "b, b"),
    "singular values": (lambda x: jnp.linalg.svd(x, compute_uv=False), "4, b"),
    "projection": (lambda x: jnp.linalg.qr(x)[0] @ jnp.linalg.qr(x)[0].T, "b, 3"),
    "density": (lambda x: jax.scipy.signal.welch(x)[1], "b, 4"),
    "products at places": (lambda x: (x * 1j).at[:, jnp.array([2, 0])].multiply(1 - 1j), "b, 4"),
    "half a spectrum": (jnp.fft.rfft, "2, b"),
    "spectrum of both axes": (lambda x: jnp.fft.ifft2(jnp.fft.fft2(x) + 1j * x), "4, b"),
    "numbers of half a spectrum": (lambda x: jnp.fft.irfft(x * (1 + 2j)), "4, b + 1"),
    "numbers of half a spectrum of both axes": (
        lambda x: jnp.fft.irfft2(x * (1 + 2j)),
        "4, b + 1",
    ),
    "products at a place": (lambda x, i: (x * 1j).at[..., i].multiply(2j), "b, 4"),
}


@pytest.mark.parametrize("consumer", CONSUMERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_of_any_size(name, consumer, tmp_path):
    fun, shape = PROGRAMS[name]
    dims = jax.export.symbolic_shape(shape)
    args = [jax.ShapeDtypeStruct(dims, "float32")]
    more = [np.array([3, 1], np.int32)] if name == "products at a place" else []
    path = tmp_path / "model"
    getattr(export, f"to_{consumer}")(fun, (*args, *more), path)
    model = export.load(path)
    rng = np.random.default_rng(0)
    for size in (4, 7):
        known = [dim if isinstance(dim, int) else size for dim in dims]
        x = rng.uniform(-1, 1, known).astype(np.float32)
        expected = np.asarray(jax.jit(fun)(x, *more))
        actual = model(x, *more)
        if np.iscomplexobj(expected):
            expected = np.stack([expected.real, expected.imag], -1)
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)


def test_products_at_one_place_need_no_loop():
    """Each element has at most one update."""
    spectrum = jax.ShapeDtypeStruct((3, 8), "complex64")
    model = export.to_onnx(lambda x: x.at[..., 1:-1].multiply(2), (spectrum,))
    assert model.report.ops["Mul"] == 4 and "Loop" not in model.report.ops
