"""Products of a matrix and its transpose."""

import functools

import numpy as np
from jax import lax

from harnesses import linalg
from harnesses.arguments import name, random
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses


@harnesses
@symbolic(every_axis)
def symmetric_product():
    for dtype in (np.float32, np.float64):
        for batch, m, n in (((), 4, 3), ((2,), 3, 5), ((), 0, 2), ((), 3, 0), ((0,), 2, 2)):
            for alpha, beta in ((1.0, 0.0), (-2.0, 0.5)):
                symmetric = functools.partial(
                    lax.linalg.symmetric_product, alpha=alpha, beta=beta, symmetrize_output=True
                )
                args = (random((*batch, m, n), dtype), random((*batch, m, m), dtype))
                yield Harness(
                    "symmetric_product",
                    f"{batch=}_{m=}_{n=}_{alpha=}_{beta=}_{name(dtype)}",
                    symmetric,
                    args,
                    linalg.relative_to_norm(),
                )
