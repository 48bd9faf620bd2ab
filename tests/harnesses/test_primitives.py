"""Harnesses compute what JAX computes; which ones, in which modes and on which targets, turns."""

import subprocess
import sys

from harnesses.cell import Verdict
from harnesses.database import Database
from harnesses.harness import all_harnesses
from harnesses.selection import Selection
from harnesses.sweep import unused_limitations, versions
from tools.sweep import SECONDS


def test_all_cells_are_as_expected(tmp_path):
    path = tmp_path / "sweep.sqlite"
    command = [sys.executable, "-m", "tools.sweep", "--database", str(path)]
    subprocess.run(command, check=False)
    database = Database(path)
    selection = Selection(with_consumers=True, seconds=SECONDS)
    sweeps = dict(database.finished(selection.as_data()))
    (sweep,) = [sweep for sweep, ran in sweeps.items() if ran == versions()]
    rows = database.rows(sweep)
    database.close()
    bad = [
        f"{row.verdict}: {row.harness}, {row.mode} on {row.target}: {row.outcome}: {row.message}"
        for row in rows
        if not Verdict(row.verdict).is_as_expected
    ]
    assert rows
    assert not bad, "\n".join(bad[:100])


def test_no_limitation_is_unused():
    assert unused_limitations(all_harnesses()) == []
