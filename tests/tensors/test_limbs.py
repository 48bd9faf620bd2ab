"""Products of integers by products of float32."""

import numpy as np
import pytest
import tensorflow as tf

from lowering.tensors import limbs


@pytest.mark.parametrize("terms", [1, 2, 255, 256, 257, 1025, 5000])
@pytest.mark.parametrize("is_known", [True, False])
def test_product(terms, is_known):
    """All sums are exact, modulo 2^32, also of the largest numbers."""
    generator = np.random.default_rng(terms)
    limits = np.iinfo(np.int32)
    x = generator.integers(limits.min, limits.max, (3, terms), np.int32, endpoint=True)
    y = generator.integers(limits.min, limits.max, (terms, 2), np.int32, endpoint=True)
    x[0], y[:, 0] = -1, limits.max
    found = limbs.product(tf.constant(x), tf.constant(y), tf.matmul, terms if is_known else None)
    exact = x.astype(object) @ y.astype(object) % 2**32
    np.testing.assert_array_equal(found.numpy().view(np.uint32), exact.astype(np.uint32))
