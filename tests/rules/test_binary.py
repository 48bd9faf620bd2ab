"""Divisions that JAX itself cannot compile."""

import numpy as np
import pytest
from jax import lax

from tests.helpers import assert_same


@pytest.mark.parametrize("fun", [lax.div, lax.rem])
def test_divisors_that_xla_finds_to_be_zero(run, fun):
    # JAX crashes when it compiles `fun(x ^ x, x ^ x)` as one program.
    x = np.int8([3, -5, 0])
    assert_same(run(lambda x: fun(x ^ x, x ^ x), x), fun(np.zeros_like(x), np.zeros_like(x)))
