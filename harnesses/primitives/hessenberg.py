"""Reduction of matrices to Hessenberg form and to tridiagonal form."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import nan_reaches
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)
_close = linalg.relative_to_norm(16)


@harnesses
@symbolic(every_axis)
def hessenberg():
    for dtype in DTYPES:
        for shape in ((5, 5), (2, 4, 4), (1, 1), (2, 2), (0, 3, 3)):
            args = (random(shape, dtype),)
            yield Harness(
                "hessenberg", f"{shape=}_{name(dtype)}", lax.linalg.hessenberg, args, _close
            )
        already = (np.triu(np.ones((4, 4), dtype), -1),)
        yield Harness(
            "hessenberg", f"already_{name(dtype)}", lax.linalg.hessenberg, already, _close
        )
        nan = (linalg.with_nonfinite(random((2, 4, 4), dtype)),)
        yield Harness("hessenberg", f"nan_{name(dtype)}", lax.linalg.hessenberg, nan, nan_reaches)


@harnesses
@symbolic(every_axis)
def tridiagonal():
    for dtype in DTYPES:
        for lower in (True, False):
            reduce = functools.partial(lax.linalg.tridiagonal, lower=lower)
            for shape in ((5, 5), (2, 3, 3), (1, 1), (2, 2)):
                case = f"{shape=}_{lower=}_{name(dtype)}"
                args = (random(shape, dtype),)
                yield Harness("tridiagonal", case, reduce, args, _close, params={"lower": lower})
        already = (np.diag([1, 2, 3, 4]).astype(dtype),)
        yield Harness(
            "tridiagonal", f"already_{name(dtype)}", lax.linalg.tridiagonal, already, _close
        )
