"""Primitives on arrays of six to eight axes; see `many_axes`."""

import jax
import pytest

from harnesses import cell
from harnesses.cell import MODES, RUNTIME, SWEPT
from lowering.targets import CONSUMERS
from tests.rules.many_axes import CASES
from tests.turns import turns


@pytest.mark.parametrize("name", CASES)
def test_many_axes(name):
    """In one mode on each target, and by the runtime of one consumer."""
    harness = CASES[name]
    modes = {target: turns(MODES, name, target) for target in SWEPT}
    cells = [
        *(c for t in SWEPT for c in cell.cells_of(harness, modes[t], (t,))),
        *cell.cells_of(harness, (RUNTIME,), turns(CONSUMERS, name)),
    ]
    with jax.enable_x64(True):
        for result in cell.run(harness, cells):
            assert result.verdict.is_as_expected, result
