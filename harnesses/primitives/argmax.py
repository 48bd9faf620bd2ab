"""The primitives argmax and argmin."""

import numpy as np
from jax import lax

from harnesses.arguments import BOOL, FLOAT, INTEGER, name, random, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses


def _arg(fun, axis, index_dtype):
    return lambda x: fun(x, axis, index_dtype)


@harnesses
@symbolic(every_axis)
def argmax_and_argmin():
    for primitive, fun in {"argmax": lax.argmax, "argmin": lax.argmin}.items():
        for dtype in BOOL + INTEGER + FLOAT:
            # Few different values, so that there are many ties.
            x = random((4, 9, 3), dtype, 0, 3)
            axis, index_dtype = (1, np.int64) if np.dtype(dtype).itemsize < 4 else (0, np.int32)
            yield Harness(
                primitive, f"axis={axis}_{name(dtype)}", _arg(fun, axis, index_dtype), (x,)
            )
            yield Harness(
                primitive, f"specials_{name(dtype)}", _arg(fun, 1, np.int32), (_rotations(dtype),)
            )
        for index_dtype in (np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64):
            yield Harness(
                primitive,
                f"index_dtype={name(index_dtype)}",
                _arg(fun, 1, index_dtype),
                (random((3, 50), np.float32),),
            )
        for shape, axis in (((1,), 0), ((3, 0, 2), 0), ((1000,), 0)):
            for dtype in (np.float32, np.int32):
                yield Harness(
                    primitive,
                    f"shape={shape}_axis={axis}_{name(dtype)}",
                    _arg(fun, axis, np.int32),
                    (random(shape, dtype, -99, 99),),
                )


def _rotations(dtype):
    """Returns rows that each hold the special values, starting with a different one.

    Floats occur twice. For them there are further rows without NaN, without NaN and infinities, and
    with all elements equal.
    """
    values = specials(dtype)
    if dtype not in FLOAT:
        return np.stack([np.roll(values, i) for i in range(values.size)])
    values = np.concatenate([values, values])
    rows = [np.roll(values, i) for i in range(values.size)]
    no_nan = np.where(np.isnan(values), dtype(0), values)
    rows += [np.roll(no_nan, i) for i in range(values.size)]
    finite = np.where(np.isinf(no_nan), dtype(-0.0), no_nan)
    rows += [np.roll(finite, i) for i in range(0, values.size, 3)]
    rows += [np.full_like(values, v) for v in (np.nan, np.inf, -np.inf, -0.0)]
    return np.stack(rows)
