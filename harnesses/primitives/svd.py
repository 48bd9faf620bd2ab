"""Singular value decompositions."""

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import axes, every_axis
from harnesses.compare import close_to_largest
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _harness(case, a, dtype, symbolic=every_axis, **params):
    params = {"full_matrices": True, "compute_uv": True, **params}

    def svd(a):
        # The primitive returns the singular values first.
        results = lax.linalg.svd(a, **params)
        return (results[1], results[0], results[2]) if params["compute_uv"] else results

    return Harness(
        "svd",
        f"{case}_{name(dtype)}",
        svd,
        (a,),
        linalg.svd,
        params=params,
        symbolic=symbolic,
        derivatives=None,
    )


def _projections(a):
    """Singular values, and of singular vectors what does not depend on their phases."""
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    return s, jnp.real(u * u.conj()), jnp.real(vh * vh.conj())


@harnesses
def svd():
    for dtype in DTYPES:
        for shape in ((2, 5, 3), (3, 5), (0, 3), (2, 3, 0)):
            for full_matrices in (True, False):
                case = f"{shape=}_{full_matrices=}"
                yield _harness(case, random(shape, dtype), dtype, full_matrices=full_matrices)
        for shape in ((1, 1), (0, 3, 2)):
            yield _harness(f"{shape=}", random(shape, dtype), dtype)
        for shape in ((2, 3, 4), (0, 3)):
            yield _harness(f"{shape=}_values", random(shape, dtype), dtype, compute_uv=False)
        regular = random((5, 4), dtype)
        hard = linalg.stacked(
            linalg.with_nonfinite(regular),
            linalg.with_nonfinite(regular, np.inf),
            linalg.with_singular_values((5, 4), [2, 2, 1, 1], dtype),
            linalg.with_singular_values((5, 4), [3, 2], dtype),
            linalg.with_singular_values((5, 4), np.logspace(0, -12, 4), dtype),
            np.zeros((5, 4), dtype),
            np.ones((5, 4), dtype),
            np.triu(np.ones((5, 4), dtype)),
            linalg.matrix(lambda rng: rng.normal(size=(5, 4)) * 1e-30, dtype),
            linalg.matrix(lambda rng: rng.normal(size=(5, 4)) * 1e30, dtype),
        )
        yield _harness("hard", hard, dtype)
        separated = linalg.with_singular_values((5, 4), [7, 4, 2, 1], dtype)
        case = f"projections_{name(dtype)}"
        yield Harness("svd", case, _projections, (separated,), close_to_largest(256))
    dtype = np.float64
    yield _harness("subset", random((3, 4), dtype), dtype, symbolic=axes(), subset_by_index=(0, 3))
    yield _harness("qr", random((3, 4), dtype), dtype, algorithm=lax.linalg.SvdAlgorithm.QR)
    yield _harness("large", random((64, 48), dtype), dtype)
