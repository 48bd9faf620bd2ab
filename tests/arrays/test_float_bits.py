"""The bits of floats, by arithmetic."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from lowering.arrays import float_bits

TINY = np.finfo(np.float32).smallest_normal
NUMBERS = np.concatenate(
    [
        np.float32([0, 1, -1, 1.5, 2, 3, TINY, -TINY, np.inf, -np.inf, 3.4028235e38, 1e-30]),
        np.random.default_rng(0).integers(1 << 23, 255 << 23, 500, np.int32).view(np.float32),
    ]
)


@pytest.mark.parametrize("sign", [1, -1])
def test_bits_of_floats(sign):
    x = np.float32(sign) * NUMBERS
    np.testing.assert_array_equal(jax.jit(float_bits.bits_of)(x), x.view(np.int32))
    np.testing.assert_array_equal(jax.jit(float_bits.of_bits)(x.view(np.int32)), x)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_bits_of_short_floats(dtype):
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(dtype)
    is_nan, is_subnormal = np.isnan(x), (x != 0) & (abs(x) < ml_dtypes.finfo(dtype).smallest_normal)
    # XLA flushes the subnormals of bfloat16, as those of float32.
    is_kept = ~is_nan & ~(is_subnormal & (dtype == jnp.bfloat16))
    found = np.asarray(jax.jit(float_bits.bits_of_short)(x))
    np.testing.assert_array_equal(found[is_kept], bits[is_kept])
    again = np.asarray(
        jax.jit(float_bits.of_short_bits, static_argnums=1)(bits.astype(np.int32), np.dtype(dtype))
    )
    np.testing.assert_array_equal(again.view(np.uint16)[is_kept], bits[is_kept])
    assert np.isnan(again[is_nan]).all()


def test_nan():
    bits = np.int32([0x7FC00000, 0x7F800001, -1])
    assert np.isnan(float_bits.of_bits(bits)).all()
    assert float_bits.bits_of(np.float32([np.nan]))[0] == 0x7FC00000
