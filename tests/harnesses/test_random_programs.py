"""Random programs compute what JAX computes, in every mode.

Each mode is that of one of the exact targets, by turns. Each program runs on portable in one mode,
too, and those without a variant by the runtime of one consumer.

Half of the programs are run as they are. The others are mapped, differentiated, the body of a scan,
of symbolic size, or run under settings of JAX.
"""

import dataclasses
import multiprocessing
import os

import hypothesis
import jax
import ml_dtypes
import numpy as np
import pebble
import pytest
from hypothesis import strategies as st
from jax import lax

from harnesses import cell, compare, programs
from harnesses.cell import ALL_MODES, Verdict
from harnesses.harness import Harness
from harnesses.variants import PLAIN, VARIANTS
from lowering.targets import CONSUMERS
from tests import turns
from tests.passes import checking

# More programs: LOWERING_PROGRAMS=2000 pytest tests/harnesses/test_random_programs.py
COUNT = int(os.environ.get("LOWERING_PROGRAMS", "40"))
# The number of programs of a process, which keeps all that XLA has compiled in memory.
_PER_PROCESS = 25

_EXACT = ("tf", "xla")

# A bound of the rounding errors of up to 40 equations, in units of a dtype's epsilon.
_ULPS = 300
_DERIVATIVE = compare.close_to_largest(ulps=_ULPS)

_number = st.integers(0, 1023)
_instructions = st.lists(st.tuples(_number, _number, _number, _number), min_size=10, max_size=40)


_SCAN = "scan"
_OTHERS = [_SCAN, *(name for name in VARIANTS if name != PLAIN)]
_kinds = st.integers(0, 2 * len(_OTHERS) - 1).map(lambda i: ([PLAIN] * len(_OTHERS) + _OTHERS)[i])

# Programs that are differentiated are smooth, and lose some more bits.
_DERIVATIVES = ("jvp", "vjp", "gradient")


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
    """Tests `count` programs; each part has its own, and others whenever sources change."""
    checking.install()
    settings = hypothesis.settings(
        max_examples=count, deadline=None, print_blob=True, database=None
    )
    test = hypothesis.given(_instructions, st.integers(0, 1000), _kinds)(_check)
    with jax.enable_x64(True):
        hypothesis.seed(turns.number("programs", str(part)))(settings(test))()


def _check(instructions, seed, kind):
    args = programs.inputs(seed, 4)
    fun = programs.program(instructions, smooth=kind in _DERIVATIVES)
    hypothesis.assume(jax.eval_shape(fun, *args))
    # The first dimension of the inputs that have the same one.
    sizes = [x.shape[0] if x.ndim else 0 for x in args]
    symbolic = ["b, ..." if size and size == max(sizes) else None for size in sizes]
    harness = Harness(
        "random_program", "", fun, tuple(args), _close, symbolic=symbolic, derivatives=_DERIVATIVE
    )
    if kind == _SCAN:
        harness = _scanned(harness)
    variant = PLAIN if kind == _SCAN else kind
    exact = cell.cells_of(harness, targets=_EXACT, variant=variant)
    cells = [c for c in exact if _EXACT[(seed + ALL_MODES.index(c.mode)) % 2] == c.target]
    # By turns, as most rules are those of the exact targets.
    cells += _one(seed, cell.cells_of(harness, targets=["portable"], variant=variant))
    cells += _one(seed, cell.cells_of(harness, ["runtime"], CONSUMERS, variant=variant))
    for result in cell.run(harness, cells):
        assert result.verdict in (Verdict.EQUAL, Verdict.NO_VARIANT), (kind, result)


def _one(seed, cells):
    """One of the cells, or none if there are none."""
    return [cells[seed % len(cells)]] if cells else []


def _scanned(harness):
    """A harness whose program is the body of a scan over three inputs."""
    args = tuple(np.stack([x, x[::-1] if x.ndim else x, x]) for x in harness.args)
    return dataclasses.replace(
        harness, fun=lambda *xs: lax.map(lambda x: harness.fun(*x), xs), args=args
    )
