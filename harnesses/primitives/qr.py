"""QR decompositions and products of Householder reflectors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import axes, axes_of, every_axis, symbolic
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)
_close = linalg.relative_to_norm()


@harnesses
@symbolic(every_axis)
def qr():
    for dtype in DTYPES:
        for shape in ((4, 4), (2, 5, 3), (3, 5), (1, 1), (0, 3), (3, 0), (0, 2, 2)):
            for full_matrices in (True, False):
                for pivoting in (True, False):
                    params = {"full_matrices": full_matrices, "pivoting": pivoting}
                    # For square matrices `full_matrices` makes no difference.
                    if full_matrices and shape[-2] == shape[-1]:
                        continue
                    # Skipped to save time: the loops take long to compile.
                    if full_matrices and pivoting and dtype in COMPLEX:
                        continue
                    yield Harness(
                        "qr",
                        f"{shape=}_{full_matrices=}_{pivoting=}_{name(dtype)}",
                        functools.partial(lax.linalg.qr, **params),
                        (random(shape, dtype),),
                        linalg.qr,
                        params=params,
                    )
        hard = linalg.stacked(
            linalg.with_singular_values((5, 4), [3, 2], dtype),
            np.zeros((5, 4), dtype),
            np.ones((5, 4), dtype),
            np.triu(np.ones((5, 4), dtype)),
            np.full((5, 4), 1e-30, dtype),
            random((5, 4), dtype, -1e30, 1e30),
        )
        # Where matrices are singular there are no derivatives.
        yield Harness(
            "qr", f"hard_{name(dtype)}", lax.linalg.qr, (hard,), linalg.qr, derivatives=None
        )
        nan = (linalg.with_nonfinite(random((2, 4, 3), dtype)),)
        yield Harness("qr", f"nan_{name(dtype)}", lax.linalg.qr, nan, linalg.qr)
    large = (random((64, 64), np.float64),)
    yield Harness("qr", "large", lax.linalg.qr, large, linalg.qr)


def _raw_qr(a):
    h, taus = jnp.linalg.qr(a, mode="raw")
    return jnp.swapaxes(h, -1, -2), taus


def _pivoted_multiply(a, c):
    return jax.scipy.linalg.qr_multiply(a, c, pivoting=True)


@harnesses
@symbolic(every_axis)
def reflectors():
    for dtype in DTYPES:
        for shape in ((4, 3), (2, 3, 4), (1, 1), (0, 2)):
            args = (random(shape, dtype),)
            yield Harness("geqrf", f"{shape=}_{name(dtype)}", _raw_qr, args, _close)
        args = (random((5, 4), dtype), random((3, 5), dtype))
        yield Harness(
            "geqp3",
            f"shape=(5, 4)_{name(dtype)}",
            _pivoted_multiply,
            args,
            _close,
            symbolic=axes_of((), (0,)),
        )
        for shape, count in (((4, 3), 3), ((2, 4, 4), 2), ((3, 2), 0), ((1, 1), 1)):
            args = (random(shape, dtype, -1, 1), random((*shape[:-2], count), dtype, -1, 1))
            case = f"{shape=}_{count=}_{name(dtype)}"
            product = lax.linalg.householder_product
            batch = axes(*range(len(shape) - 2))
            yield Harness("householder_product", case, product, args, _close, symbolic=batch)
        for left in (True, False):
            for transpose in (True, False):
                multiply = functools.partial(lax.linalg.ormqr, left=left, transpose=transpose)
                for batch in ((), (2,)):
                    c = random((*batch, 4, 2) if left else (*batch, 2, 4), dtype)
                    a = random((*batch, 4, 3), dtype, -1, 1)
                    taus = random((*batch, 3), dtype, -1, 1)
                    case = f"{left=}_{transpose=}_{batch=}_{name(dtype)}"
                    yield Harness("ormqr", case, multiply, (a, taus, c), _close)
