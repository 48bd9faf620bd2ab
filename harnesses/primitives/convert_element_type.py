"""Conversions between dtypes."""

import functools

import numpy as np
from jax import lax

from harnesses.arguments import ALL, full_range, is_complex, name, random, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from harnesses.primitives.unary import normals


def _values(dtype, to):
    """Returns a maker of special values, values near the limits of integers, and random values."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return lambda rng: specials(dtype)
    if kind.kind in "iu":
        return lambda rng: np.concatenate([specials(dtype), full_range((64,), dtype)(rng)])

    def make(rng):
        values = specials(dtype)[:: 7 if is_complex(dtype) else 1]
        if to == np.bool_ and not is_complex(dtype):
            # Versions of JAX differ in whether a subnormal bfloat16 is true.
            values = normals(dtype)
        limits = [2.0**n + d for n in (7, 8, 15, 16, 31, 32, 63, 64) for d in (-1.0, -0.5, 0, 1.0)]
        with np.errstate(over="ignore"):
            return np.concatenate(
                [
                    values,
                    np.array(limits).astype(kind),
                    np.nextafter(np.array(limits), 0).astype(kind),
                    -np.array(limits).astype(kind),
                    random((32,), dtype, -300, 300)(rng),
                    rng.standard_normal(64).astype(kind),
                ]
            )

    return make


@harnesses
@symbolic(every_axis)
def convert_element_type():
    for dtype in ALL:
        for to in ALL:
            if dtype == to:
                continue
            fun = functools.partial(lax.convert_element_type, new_dtype=to)
            yield Harness(
                "convert_element_type", f"{name(dtype)}_to_{name(to)}", fun, (_values(dtype, to),)
            )
    for shape in [(), (0, 2), (2, 1, 3)]:
        fun = functools.partial(lax.convert_element_type, new_dtype=np.int32)
        yield Harness("convert_element_type", f"shape={shape}", fun, (random(shape, np.float32),))
