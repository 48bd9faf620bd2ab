"""Eigenvalues and eigenvectors of Hermitian matrices."""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close_to_largest
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _harness(case, a, dtype, **params):
    params = {"symmetrize_input": False, "lower": True, **params}
    return Harness(
        "eigh",
        f"{case}_{name(dtype)}",
        functools.partial(lax.linalg.eigh, **params),
        (a,),
        linalg.eigh(params["lower"]),
        params=params,
        derivatives=None,
    )


def _projections(a):
    """Eigenvalues, and of eigenvectors what does not depend on their phases."""
    v, w = lax.linalg.eigh(a)
    return w, jnp.real(v * v.conj())


@harnesses
@symbolic(every_axis)
def eigh():
    for dtype in DTYPES:
        for shape in ((4, 4), (2, 2), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3)):
            yield _harness(f"{shape=}", random(shape, dtype), dtype)
        # The lower triangle, which is not read, has a NaN.
        upper = linalg.with_nonfinite(random((2, 4, 4), dtype))
        yield _harness("upper", upper, dtype, lower=False)
        regular = random((5, 5), dtype)
        hard = linalg.stacked(
            linalg.with_nonfinite(regular),
            linalg.with_nonfinite(regular, np.inf),
            linalg.with_eigenvalues([1, 1, 2, 2, -3], dtype),
            linalg.with_eigenvalues(np.logspace(0, -12, 5), dtype),
            linalg.with_eigenvalues([-2, 2, -2, 2, 0], dtype),
            np.zeros((5, 5), dtype),
            np.ones((5, 5), dtype),
            np.diag([3, -1, 2, 0, 7]).astype(dtype),
            linalg.matrix(lambda rng: rng.normal(size=(5, 5)) * 1e-30, dtype),
            linalg.matrix(lambda rng: rng.normal(size=(5, 5)) * 1e30, dtype),
        )
        yield _harness("hard", hard, dtype)
        separated = linalg.with_eigenvalues([1, 2, 4, 7], dtype)
        case = f"projections_{name(dtype)}"
        yield Harness("eigh", case, _projections, (separated,), close_to_largest(256))
    dtype = np.float64
    yield _harness("unsorted", random((3, 3), dtype), dtype, sort_eigenvalues=False)
    yield _harness("subset", random((3, 3), dtype), dtype, subset_by_index=(0, 3))
    yield _harness("large", random((64, 64), dtype), dtype)
