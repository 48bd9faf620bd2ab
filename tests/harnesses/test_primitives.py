"""Every harness computes what JAX computes, in modes and on targets that turn from run to run."""

import os
import subprocess
import sys

from harnesses.cell import Verdict
from harnesses.database import Database
from harnesses.harness import all_harnesses
from harnesses.selection import Selection
from harnesses.sweep import unused_limitations, versions


def test_all_cells_are_as_expected(tmp_path):
    path = tmp_path / "sweep.sqlite"
    command = [sys.executable, "-m", "tools.sweep", "--database", str(path)]
    if runs := os.environ.get("LOWERING_RUNS"):
        command += ["--runs", runs]
    subprocess.run(command, check=False)
    database = Database(path)
    sweeps = dict(database.finished(Selection(with_consumers=True).as_data()))
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
