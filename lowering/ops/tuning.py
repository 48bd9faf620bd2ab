"""Choices for speed alone: where TensorFlow's kernels do the same faster by another op.

`python -m tools.bench --without NAME` shows what each gains, in the row that it names. They serve
targets whose graphs TensorFlow's own kernels run, and ops that XLA does not compile. Choices
between loops and equations are made by passes: `passes/hoisting.py`, `passes/unrolling.py` and
`passes/flattening.py`.
"""

import math
import string
from collections.abc import Sequence

import tensorflow as tf

from lowering.ops import modes
from lowering.targets import Mode, Target

# The most elements that an Einsum transposes faster, unless the last axis stays the last.
_EINSUM_ELEMENTS = 1 << 12

# The most multiplications that a product of matrices by Eigen does as fast as oneDNN.
_EIGEN_MULTIPLICATIONS = 1 << 20


def _permits(target: Target) -> bool:
    return target.has_tensorflow_kernels and modes.current() is not Mode.COMPILED


def transposes_by_einsum(target: Target, x: tf.Tensor, permutation: Sequence[int]) -> bool:
    """Whether an Einsum transposes `x` faster than Transpose.

    TensorFlow runs a Transpose of float32 by oneDNN, which takes 30 microseconds to start; an
    Einsum takes one. Row: transformer, batch 1, graph.
    """
    last = x.shape.rank - 1
    if not _permits(target) or x.dtype != tf.float32 or last >= len(string.ascii_lowercase):
        return False
    size = x.shape.num_elements()
    return permutation[-1] == last or (size is not None and size <= _EINSUM_ELEMENTS)


def multiplies_by_eigen(target: Target, x: tf.Tensor, y: tf.Tensor, adj_y: bool) -> bool:
    """Whether BatchMatMulV3 multiplies batches of matrices faster than BatchMatMulV2.

    TensorFlow runs BatchMatMulV2 of float32 by oneDNN, which takes 30 microseconds to start, but
    BatchMatMulV3 by Eigen, which takes one. TF Lite and ONNX take both; TF.js only the former.
    Row: transformer, batch 16, graph.
    """
    sizes = (*x.shape, y.shape[-2 if adj_y else -1])
    if not _permits(target) or x.dtype != tf.float32 or None in sizes:
        return False
    return math.prod(sizes) <= _EIGEN_MULTIPLICATIONS


def rectifies_by_select(target: Target) -> bool:
    """Whether a select by a comparison with zero is a faster rectifier than Relu.

    XLA computes a Relu, and what is before it, once for each of its uses, but what a select reads
    twice only once. Row: resnet50, batch 16, compiled.
    """
    return target.has_tensorflow_kernels and modes.current() is Mode.COMPILED
