"""Pairs of ops in a graph compute what they do one by one: another part of them for each seed.

LOWERING_SEED=7 pytest tests/ops/test_pairs_of_ops.py    # the part of a seed
python -m tests.ops.pairs_of_ops                         # all pairs
"""

import os
import warnings

import jax
import numpy as np
import pytest

from harnesses.arguments import ALL, name
from tests.ops import pairs_of_ops

SEED = os.environ.get("LOWERING_SEED", "0")
_COUNT = 25
_COUNT_IN_LOOPS = 8

# Each was wrong in graphs, and right when it ran op by op.
KNOWN = {
    "float32": [
        ("greater", "logical_not"),
        ("greater_equal", "not"),
        ("neg", "div_row"),
        ("abs", "div_large"),
        ("add_one", "log"),
        ("exp", "sub_one"),
        ("floor", "sub_from_minus_zero"),
        ("add_row", "add_twice"),
        ("double", "mul_zero"),
    ],
    "bfloat16": [("neg", "div_row"), ("less", "not")],
    "int8": [("neg", "max"), ("neg", "argmax"), ("sub_one", "square"), ("sub_one", "pow_2")],
    "int16": [("first_minus", "times_itself"), ("add_one", "square_of_difference")],
    "uint8": [
        ("add_one", "sub_from_zero"),
        ("mul_zero", "one_sub"),
        ("not", "square_of_difference"),
    ],
    "uint16": [("add_one", "sub_from_zero"), ("add_one", "stack"), ("sub_one", "square")],
    "uint32": [("sub_one", "square"), ("add_first", "add_reversed")],
    "complex64": [("neg", "double"), ("conj", "double_again"), ("neg", "square_of_difference")],
}
KNOWN_IN_LOOPS = {"int32": [("double", "add_one"), ("double_again", "add_row")]}


@pytest.fixture(autouse=True)
def _settings():
    with jax.enable_x64(True), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("dtype", KNOWN)
def test_known_pairs(dtype):
    assert not list(pairs_of_ops.faults("tf", jax.numpy.dtype(dtype), KNOWN[dtype]))


@pytest.mark.parametrize("dtype", KNOWN_IN_LOOPS)
def test_known_pairs_in_loops(dtype):
    assert not list(
        pairs_of_ops.faults("tf", jax.numpy.dtype(dtype), KNOWN_IN_LOOPS[dtype], "loop")
    )


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_some_pairs(dtype):
    pairs = list(pairs_of_ops.pairs_of(dtype, SEED, _COUNT))
    target = ("tf", "xla")[len(name(dtype) + SEED) % 2]
    found = list(pairs_of_ops.faults(target, dtype, pairs))
    assert not found, f"LOWERING_SEED={SEED}"


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_some_pairs_in_loops(dtype):
    pairs = list(pairs_of_ops.pairs_of(dtype, f"{SEED} loop", _COUNT_IN_LOOPS))
    target = ("xla", "tf")[len(name(dtype) + SEED) % 2]
    found = list(pairs_of_ops.faults(target, dtype, pairs, "loop"))
    assert not found, f"LOWERING_SEED={SEED}"
