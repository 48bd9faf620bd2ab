"""The bits of an array as another dtype."""

import tensorflow as tf

from lowering.ops import dtypes
from lowering.registry import rule


@rule("bitcast_convert_type")
def bitcast_convert_type(ctx, x, *, new_dtype, **_):
    dtype = dtypes.to_tf(new_dtype)
    return x if x.dtype == dtype else tf.bitcast(x, dtype)
