"""Finds the constants of a converted model that hold no parameters of the user's.

Such are matrices of Fourier transforms, of changes of sizes, and other tables that a program
computes of nothing. TensorFlow's converter forgets that graphs mark them, transposes them, and
multiplies each of their channels by a number. So they are known by their elements.
"""

import collections
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.arrays.scaling import are_multiples, channels
from lowering.ops.constants import is_computed


class Computed:
    """The constants of functions that are marked as computed."""

    def __init__(self, functions: Iterable[Any]):
        """
        Args:
          functions: concrete functions of TensorFlow.
        """
        self._by_shape: dict[tuple[int, ...], list[np.ndarray]] = collections.defaultdict(list)
        for function in functions:
            graph_def = function.graph.as_graph_def()
            for nodes in (graph_def.node, *(f.node_def for f in graph_def.library.function)):
                for node in filter(is_computed, nodes):
                    array = tf.make_ndarray(node.attr["value"].tensor)
                    for matrix in channels(array.astype(np.float32, copy=False)):
                        self._by_shape[matrix.shape].append(matrix)

    def has(self, array: np.ndarray) -> bool:
        """Whether an array is one of the constants, perhaps transposed and with scaled channels."""
        if not self._by_shape:  # To look at its channels copies an array.
            return False
        return any(
            are_multiples(matrix, known)
            for matrix in channels(array)
            for known in self._by_shape.get(matrix.shape, ())
        )
