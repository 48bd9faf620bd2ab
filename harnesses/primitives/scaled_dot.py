"""Contractions of operands that have a scale for each block of elements."""

import ml_dtypes
import numpy as np
from jax import lax

from harnesses.arguments import name, random
from harnesses.compare import close
from harnesses.harness import Harness, harnesses


@harnesses
def scaled_dots():
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32):
        for preferred in (None, ml_dtypes.bfloat16, np.float32):
            for batched in (False, True):
                numbers = (((2,), (1,)), ((0,), (0,))) if batched else (((1,), (0,)), ((), ()))
                front = (2,) if batched else ()
                shapes = [(*front, *end) for end in ((3, 8), (8, 5), (3, 2), (4, 5))]

                def dot(x, y, x_scale, y_scale, numbers=numbers, preferred=preferred):
                    return lax.scaled_dot(
                        x,
                        y,
                        lhs_scale=x_scale,
                        rhs_scale=y_scale,
                        dimension_numbers=numbers,
                        preferred_element_type=preferred,
                    )

                batch = "b, " if batched else ""
                axes = f"{batch}m, _", f"{batch}_, n"
                # Whether XLA rounds scaled operands to bfloat16 depends on their sizes. Only
                # results that are rounded do not show it.
                is_single = preferred is np.float32
                yield Harness(
                    "scaled_dot",
                    f"batched={batched}_preferred={preferred and name(preferred)}_{name(dtype)}",
                    dot,
                    tuple(random(shape, dtype, -2, 2) for shape in shapes),
                    # Any order of summation is allowed, and a rounding to bfloat16 after it.
                    close(ulps=8, atol=1e-4) if is_single else close(ulps=2, atol=1e-4),
                    symbolic=() if is_single else axes * 2,
                )
