"""Entries for functions of tensors, whose inputs and outputs are numbered."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.export.entry import Entry, Reference, of_flat


def flat_entry(
    fun: Callable[..., Any], arrays: Sequence[np.ndarray], for_consumer: bool = False
) -> Entry:
    """An entry for a TensorFlow function of arrays, whose inputs and outputs are numbered.

    Args:
      fun: a function of tensors; its results may be in pytrees.
      arrays: arrays of the shapes and dtypes of its arguments.
      for_consumer: whether inputs and outputs are in dtypes that all runtimes have.
    """
    outputs: list[str] = []

    def call(*tensors: Any) -> list[Any]:
        results = tf.nest.flatten(fun(*tensors))
        outputs[:] = [f"y{i:03}" for i in range(len(results))]
        return results

    reference = Reference(
        fun,
        lambda arrays: tuple(map(tf.constant, arrays)),
        lambda found: [x.numpy() for x in tf.nest.flatten(found)],
    )
    arrays = list(map(np.asarray, arrays))  # NumPy's scalars are no arrays to runtimes.
    specs = [tf.TensorSpec(x.shape, x.dtype, f"x{i:03}") for i, x in enumerate(arrays)]
    return of_flat(call, specs, reference, arrays, outputs, for_consumer)
