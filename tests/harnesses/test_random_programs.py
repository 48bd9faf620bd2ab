"""Random programs compute what JAX computes, in every mode and on every target."""

import multiprocessing
import os

import hypothesis
import jax
import ml_dtypes
import numpy as np
import pebble
import pytest
from hypothesis import strategies as st

from harnesses import cell, compare, programs
from harnesses.harness import Harness

# More programs: LOWERING_PROGRAMS=2000 pytest tests/harnesses/test_random_programs.py
COUNT = int(os.environ.get("LOWERING_PROGRAMS", "40"))
# The number of programs of a process, which keeps all that XLA has compiled in memory.
_PER_PROCESS = 100

# A bound of the rounding errors of up to 40 equations, in units of a dtype's epsilon.
_ULPS = 300

_number = st.integers(0, 1023)
_instructions = st.lists(st.tuples(_number, _number, _number, _number), min_size=10, max_size=40)


def _close(expected, actual, args):
    for e, a in zip(expected, actual, strict=True):
        eps = 0.0 if e.dtype.kind in "biu" else float(ml_dtypes.finfo(e.dtype).eps)
        finite = np.abs(np.where(np.isfinite(e), e, 0).astype(np.complex128))
        scale = max(1.0, float(finite.max(initial=0)))
        comparison = compare.close(rtol=0.0, atol=_ULPS * eps * scale)([e], [a], args)
        if not comparison.equal:
            return comparison
    return compare.Comparison(True)


@pytest.mark.parametrize("part", range(-(-COUNT // _PER_PROCESS)))
def test_programs(part):
    spawn = multiprocessing.get_context("spawn")
    with pebble.ProcessPool(max_workers=1, context=spawn) as pool:
        count = min(_PER_PROCESS, COUNT - part * _PER_PROCESS)
        pool.schedule(_run, (part, count)).result()


def _run(part, count):
    """Tests `count` programs; each part has its own."""
    settings = hypothesis.settings(
        max_examples=count, deadline=None, print_blob=True, database=None
    )
    test = hypothesis.given(_instructions, st.integers(0, 1000))(_check)
    with jax.enable_x64(True):
        hypothesis.seed(part)(settings(test))()


def _check(instructions, seed):
    fun, args = programs.program(instructions), programs.inputs(seed, 4)
    hypothesis.assume(jax.eval_shape(fun, *args))
    harness = Harness("random_program", "", fun, tuple(args), _close)
    for result in cell.run(harness, cell.cells_of(harness)):
        assert result.verdict == cell.Verdict.EQUAL, result
