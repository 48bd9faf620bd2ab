"""Solutions of tridiagonal systems."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.compare import close
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _diagonal(shape, dtype):
    """Returns a maker of diagonals so large that the system is well conditioned."""
    return lambda rng: 3 + random(shape, dtype, -0.5, 0.5)(rng)


@harnesses
@symbolic(every_axis)
def tridiagonal_solve():
    solve = lax.linalg.tridiagonal_solve
    for dtype in DTYPES:
        for shape, k in (((5,), 2), ((2, 4), 1), ((1,), 3), ((2,), 1), ((0,), 2), ((3,), 0)):
            off, d = random(shape, dtype, -1, 1), _diagonal(shape, dtype)
            args = (off, d, off, random((*shape, k), dtype))
            case = f"{shape=}_{k=}_{name(dtype)}"
            yield Harness("tridiagonal_solve", case, solve, args, linalg.relative_to_norm(8))
        # The diagonal is zero, so the pivots are below it.
        zeros, ones = np.zeros(4, dtype), np.ones(4, dtype)
        b = random((4, 2), dtype)
        args = (2 * ones, zeros, ones, b)
        case = f"pivoting_{name(dtype)}"
        yield Harness("tridiagonal_solve", case, solve, args, linalg.relative_to_norm(8))
        d = np.stack([ones, ones, 3 * ones])
        d[1, 2] = 0
        off = np.zeros((3, 4), dtype)
        args = (off, d, off, np.ones((3, 4, 1), dtype))
        yield Harness("tridiagonal_solve", f"singular_{name(dtype)}", solve, args, close(ulps=4))
    for dtype in (np.float32, np.float64):
        perturbed = functools.partial(solve, perturb_singular=True)
        for case, d in (("regular", [3, 4, 5, 6]), ("singular", [1, 0, 0, 3])):
            off = np.array([0, 0.5, 0, 0], dtype)
            args = (off, np.array(d, dtype), off, np.arange(8, dtype=dtype).reshape(4, 2))
            case = f"perturbed_{case}_{name(dtype)}"
            yield Harness("tridiagonal_solve", case, perturbed, args, close(ulps=16))
