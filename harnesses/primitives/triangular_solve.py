"""Solutions of triangular systems."""

import functools
import itertools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import COMPLEX, name, random
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses

DTYPES = (np.float32, np.float64, *COMPLEX)


def _system(n, dtype, batch=()):
    """Returns a maker of matrices whose triangles, and unit triangles, are well conditioned."""

    def make(rng):
        return random((*batch, n, n), dtype, -0.3, 0.3)(rng) + 2 * np.eye(n, dtype=dtype)

    return make


def _harness(case, dtype, args, **params):
    return Harness(
        "triangular_solve",
        f"{case}_{name(dtype)}",
        functools.partial(lax.linalg.triangular_solve, **params),
        args,
        linalg.relative_to_norm(8),
        params=params,
    )


@harnesses
@symbolic(every_axis)
def triangular_solve():
    flags = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    for dtype in DTYPES:
        is_complex = dtype in COMPLEX
        for values in itertools.product((True, False), repeat=5):
            params = dict(zip(flags, values, strict=True))
            if params["conjugate_a"] and not is_complex:
                continue
            if params["unit_diagonal"] and not params["lower"]:
                continue
            case = ",".join(flag for flag in flags if params[flag]) or "right_side"
            shape = (4, 3) if params["left_side"] else (3, 4)
            args = (_system(4, dtype), random(shape, dtype))
            yield _harness(case, dtype, args, **params)
        for batch, n, k in (((2, 3), 3, 2), ((), 0, 2), ((), 3, 0), ((0,), 3, 2), ((2,), 1, 1)):
            args = (_system(n, dtype, batch), random((*batch, n, k), dtype))
            yield _harness(f"{batch=}_{n=}_{k=}", dtype, args, left_side=True, lower=True)
        singular = np.array([[1, 0, 0], [2, 0, 0], [3, 4, 5]], dtype)
        b = np.array([[1, 0], [1, 0], [1, 0]], dtype)
        yield _harness("singular", dtype, (singular, b), left_side=True, lower=True)
        nan = linalg.with_nonfinite(_system(4, dtype, (2,)))
        args = (nan, random((2, 4, 2), dtype))
        yield _harness("nan", dtype, args, left_side=True, lower=True)
        yield _harness("nan_ignored", dtype, args, left_side=True, lower=False)
