"""Every harness computes what JAX computes, in every mode and on every target."""

import subprocess
import sys

import pytest

from harnesses.cell import Verdict
from harnesses.database import Database
from harnesses.harness import all_harnesses
from harnesses.sweep import Selection, unused_limitations, versions
from lowering import jax_compat

# One process of those that share the tests runs the sweep.
pytestmark = pytest.mark.xdist_group("sweep")

with jax_compat.enable_x64():
    PRIMITIVES = sorted({harness.primitive for harness in all_harnesses().values()})


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The results of a sweep of everything, by primitive."""
    path = tmp_path_factory.mktemp("sweep") / "sweep.sqlite"
    command = [sys.executable, "-m", "tools.sweep", "--database", str(path)]
    subprocess.run(command, check=False)
    database = Database(path)
    sweeps = dict(database.finished(Selection().as_data()))
    (sweep,) = [sweep for sweep, ran in sweeps.items() if ran == versions()]
    by_primitive = {primitive: [] for primitive in PRIMITIVES}
    for row in database.rows(sweep):
        by_primitive[row.primitive].append(row)
    database.close()
    return by_primitive


@pytest.mark.parametrize("primitive", PRIMITIVES)
def test_cells_are_as_expected(rows, primitive):
    expected = (Verdict.EQUAL, Verdict.LIMITED)
    bad = [
        f"{row.verdict}: {row.harness}, {row.mode} on {row.target}: {row.outcome}: {row.message}"
        for row in rows[primitive]
        if row.verdict not in expected
    ]
    assert rows[primitive]
    assert not bad, "\n".join(bad[:20])


def test_no_limitation_is_unused():
    assert unused_limitations(all_harnesses()) == []
