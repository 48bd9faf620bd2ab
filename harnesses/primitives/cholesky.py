"""Cholesky decompositions."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)
_close = linalg.relative_to_norm()


@harnesses
@symbolic(every_axis)
def cholesky():
    for dtype in DTYPES:
        for shape in ((4, 4), (1, 1), (2, 3, 5, 5), (0, 0), (2, 0, 0), (0, 3, 3)):
            yield Harness(
                "cholesky",
                f"shape={shape}_{name(dtype)}",
                lax.linalg.cholesky,
                (linalg.positive_definite(shape, dtype),),
                _close,
            )
        only_lower = functools.partial(lax.linalg.cholesky, symmetrize_input=False)
        a = np.array([[4, 99, 99], [2, 5, 99], [-2, 1, 6]], dtype)
        yield Harness("cholesky", f"lower triangle_{name(dtype)}", only_lower, (a,), _close)
        failing = np.stack([np.eye(3), np.diag([1, -1, 1]), np.diag([1, 0, 1]), 2 * np.eye(3)])
        indefinite = failing.astype(dtype)
        yield Harness(
            "cholesky",
            f"not positive definite_{name(dtype)}",
            lax.linalg.cholesky,
            (indefinite,),
            close(ulps=2),
        )
        nan = linalg.with_nonfinite(linalg.positive_definite((2, 4, 4), dtype))
        yield Harness("cholesky", f"nan_{name(dtype)}", lax.linalg.cholesky, (nan,), _close)
        inf = np.diag([np.inf, 1, 4]).astype(dtype)
        yield Harness("cholesky", f"inf_{name(dtype)}", only_lower, (inf,))


@harnesses
@symbolic(every_axis)
def cholesky_update():
    for dtype in (np.float32, np.float64):
        for n in (0, 1, 5):
            upper = linalg.matrix(
                lambda rng, n=n: np.triu(rng.normal(size=(n, n))) + 3 * np.eye(n), dtype
            )
            yield Harness(
                "cholesky_update",
                f"{n=}_{name(dtype)}",
                lax.linalg.cholesky_update,
                (upper, random((n,), dtype)),
                _close,
            )
        w = np.array([0, 1, 0], dtype)
        yield Harness(
            "cholesky_update",
            f"zeros_{name(dtype)}",
            lax.linalg.cholesky_update,
            (np.diag([-1, 2, 3]).astype(dtype), w),
            _close,
        )
