"""Pairs of ops compute in the runtimes of exported models what JAX computes.

LOWERING_SEED=7 pytest tests/export/test_pairs_of_ops.py    # the part of a seed
"""

import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from tests.ops import pairs_of_ops

SEED = os.environ.get("LOWERING_SEED", "0")
_COUNT = 12

# Arguments for which few of the ops leave the numbers that runtimes agree on.
ARGUMENTS = {
    "float32": np.float32([[0.4, 2.6, 1.3, 3.1], [1.7, 0.9, 2.2, 0.6]]),
    "int32": np.int32([[1, -5, 3, 0], [7, 2, -1, 4]]),
}
# Of 64 bits, or of bits.
_OTHERS = {"to_float64", "bits", "to_bfloat16"}


@pytest.fixture(params=["tflite", "onnx", "tfjs"])
def export_to(request, tmp_path):
    def run(fun, args):
        if request.param == "tfjs":
            export.to_tfjs(fun, args, tmp_path / "model")
        else:
            {"tflite": export.to_tflite, "onnx": export.to_onnx}[request.param](fun, args)

    return run


def test_some_pairs(export_to):
    args, programs = [], []
    for dtype, x in ARGUMENTS.items():
        pairs = pairs_of_ops.pairs_of(np.dtype(dtype), SEED, 2 * _COUNT)
        pairs = [pair for pair in pairs if not _OTHERS & set(pair)]
        pairs = [pair for pair in pairs if pairs_of_ops.is_same_compiled(pair, x)][:_COUNT]
        programs += map(pairs_of_ops.program, pairs)
        args += [x] * len(pairs)

    def fun(*xs):
        return [program(x) for program, x in zip(programs, xs, strict=True)]

    export_to(fun, tuple(args))


def test_comparisons_of_nan(export_to):
    """A NaN that decides about finite results is none that runtimes may treat as they like."""
    x = np.float32([np.nan, -1, 0, 2])

    def fun(x, y):
        return jnp.where(~(x >= 0), 7.0, x), jnp.logical_not(y > 1)

    export_to(fun, (x, x))


def test_quotients_by_known_numbers(export_to):
    x = np.float32([1e35, 3e35, -7e35, 2e34])
    divisors = np.float32([1e35, 3e34, 7e33, 1.7e35])

    def fun(x, y):
        return x / divisors, 1e30 * (y / divisors)

    assert jax.jit(fun)(x, x)
    export_to(fun, (x, x))
