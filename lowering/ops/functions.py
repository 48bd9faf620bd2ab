"""Functions of a graph: one for each function of tensors, however often it is called."""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf


def call(fun: Callable[..., Any], *operands: tf.Tensor) -> Any:
    """`fun(*operands)` as a call of one TensorFlow function, whatever the shapes.

    Args:
      fun: a module-level function of tensors that looks at no shape, and returns tensors.
      *operands: tensors.
    """
    return _concrete(fun, *(x.dtype for x in operands))(*operands)


@functools.cache
def _concrete(fun: Callable[..., Any], *dtypes: tf.DType) -> Any:
    # It outlives the graph that first needs it, so it is made outside of it.
    with tf.init_scope():
        signature = [tf.TensorSpec(None, dtype) for dtype in dtypes]
        return tf.function(fun, autograph=False, input_signature=signature).get_concrete_function()
