"""Counts of bits, by tables and in parallel."""

import jax.numpy as jnp
import numpy as np
import pytest

from lowering.arrays import bit_counts

NUMBERS = np.uint64(2) ** np.arange(32, dtype=np.uint64)


def _arguments(bits):
    """Powers of two, what is next to them, and random numbers, of so many bits."""
    random = np.random.default_rng(0).integers(0, 2**bits, 100, dtype=np.uint64)
    near = [NUMBERS - np.uint64(1), NUMBERS, NUMBERS + np.uint64(5)]
    return np.unique(np.concatenate([*near, random]) % np.uint64(2**bits)).astype(np.uint32)


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_counts_by_tables(bits):
    words = _arguments(bits)
    x = jnp.asarray(words.view(np.int32))
    ones = [int(word).bit_count() for word in words]
    zeros = [bits - int(word).bit_length() for word in words]
    np.testing.assert_array_equal(bit_counts.ones(x, bits), ones)
    np.testing.assert_array_equal(bit_counts.leading_zeros(x, bits), zeros)


def test_counts_in_parallel():
    words = _arguments(32)
    ones = [int(word).bit_count() for word in words]
    np.testing.assert_array_equal(bit_counts.ones_in_parallel(jnp.asarray(words)), ones)
