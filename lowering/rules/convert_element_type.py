"""Conversions between dtypes."""

import numpy as np
import tensorflow as tf

from lowering.ops import cast, constant, dtypes, emit
from lowering.registry import rule


@rule("convert_element_type")
def convert_element_type(ctx, x, *, new_dtype, **_):
    """Complex numbers lose their imaginary part, also on the way to bool.

    From floating point to integers NaN gives zero and values out of range saturate.
    """
    dtype = dtypes.to_tf(new_dtype)
    if x.dtype == dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex:
        x = emit("Real", x, Tout=x.dtype.real_dtype)
    if x.dtype.is_floating and dtype.is_integer:
        return _saturate(x, dtype)
    return cast(x, dtype)


def _saturate(x, dtype):
    if x.dtype in (tf.float16, tf.bfloat16):
        x = cast(x, tf.float32)
    info = np.iinfo(dtype.as_numpy_dtype)
    kind = x.dtype.as_numpy_dtype
    highest = kind(info.max)
    if int(highest) > info.max:
        highest = np.nextafter(highest, kind(0))
    number = emit("SelectV2", emit("Equal", x, x), x, constant(0, x.dtype))
    inside = emit(
        "Minimum", emit("Maximum", number, constant(info.min, x.dtype)), constant(highest, x.dtype)
    )
    result = cast(inside, dtype)
    if int(highest) == info.max:
        return result
    above = emit("Greater", x, constant(highest, x.dtype))
    return emit("SelectV2", above, constant(info.max, dtype), result)
