"""Which ops have a kernel for a dtype."""

import tensorflow as tf

from lowering.ops import kernels


def test_kernels():
    assert kernels.supports("AddV2", tf.float32)
    assert not kernels.supports("AddV2", tf.bool)
    assert kernels.supports("SelectV2", tf.bool)  # No constraint at all.
    assert not kernels.supports("TopKV2", tf.uint16)  # The XLA kernel lacks it.
