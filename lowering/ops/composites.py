"""Functions of a graph in whose place an exporter puts one op of its runtime.

TensorFlow, XLA and other converters take what is in them; see `lowering.export.composites`.
"""

from collections.abc import Callable, Hashable
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from lowering.ops import memo

# `x` with a block from a position on; called with both and the position, an int32 vector.
BLOCK_WRITE = "lowering_block_write"


def call(
    name: str, key: Hashable, body: Callable[..., tf.Tensor], *operands: tf.Tensor
) -> tf.Tensor:
    """Calls a function of the graph, which is made once for a key and types of operands.

    Args:
      name: what it computes; it is part of the name of the function.
      key: what `body` depends on beside its operands.
      body: its ops; it uses no other tensors.
      *operands: tensors of known shapes.
    """
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in operands]

    def make() -> Any:
        def named(*operands: tf.Tensor) -> tf.Tensor:
            return body(*operands)

        named.__name__ = name
        return tf.function(named, autograph=False).get_concrete_function(*specs)

    with record.stop_recording():
        concrete = memo.once((name, key, *specs), make)
        return concrete(*operands)
