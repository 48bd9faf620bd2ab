"""Models of ONNX of random layers compute what JAX computes, in all dtypes and versions of the ops.

More programs: LOWERING_PROGRAMS=2000 pytest tests/export/test_onnx_random_layers.py
"""

import os

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest

from lowering.export import to_onnx
from tests import turns

pytest.importorskip("flax")
pytest.importorskip("onnxruntime")

from lowering.export import algorithms
from lowering.export.onnx import opsets
from tests.export import random_layers

# Exports take longer than the programs of tests/harnesses/test_random_programs.py.
COUNT = -(-int(os.environ.get("LOWERING_PROGRAMS", "100")) // 20)
_DTYPES = (jnp.float32, jnp.float16, jnp.bfloat16)
_SHAPES = ((6, 6, 4), (6, 6, 4), (6, 8), (8,))


def _steady_program(rng, dtype, x):
    """A program of which JAX computes op by op what `jax.jit` does, and near it from near inputs.

    In others a variance of nearly equal numbers is cancelled out, so that rounding decides.
    """
    signs = rng.choice([-1, 1], x.shape)
    near = (x * (1 + 2 * float(jnp.finfo(dtype).eps) * signs)).astype(dtype)
    while True:
        fun = random_layers.Layers(rng, dtype).program(x.shape, int(rng.integers(2, 8)))
        computed = jex_core.jaxpr_as_fun(jax.make_jaxpr(algorithms.on_every_device(fun))(x))
        with jax.disable_jit():
            alone = computed(x)
        together, moved = (jax.jit(computed)(y) for y in (x, near))
        pairs = *zip(alone, together, strict=True), *zip(moved, together, strict=True)
        if all(_are_near(*map(np.float64, pair), np.sqrt(jnp.finfo(dtype).eps)) for pair in pairs):
            return fun


def _are_near(x, y, tolerance):
    return np.allclose(x, y, rtol=0, atol=tolerance * np.max(np.abs(y), initial=0), equal_nan=True)


@pytest.mark.parametrize("part", range(COUNT))
def test_programs(part):
    seed = turns.number("layers", str(part))
    rng = np.random.default_rng(seed)
    dtype, shape = _DTYPES[seed % 3], _SHAPES[seed // 3 % 4]
    x = jnp.asarray(rng.normal(size=(random_layers.BATCH, *shape)), dtype)
    is_symbolic, in_16_bits = rng.integers(2, size=2)
    opset = [None, *opsets.OPSETS][int(rng.integers(1 + len(opsets.OPSETS)))]
    fun = _steady_program(rng, dtype, x)
    to_onnx(
        fun,
        [x],
        polymorphic_shapes=["b, ..."] if is_symbolic else None,
        compute_dtype="float16" if in_16_bits and dtype == jnp.float16 else None,
        opset=opset,
    )
