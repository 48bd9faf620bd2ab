"""Harnesses that check the settings of the process that runs them.

As a script it sweeps them, and fails if a worker lacks a setting or if the sweep changes a setting
of the script.
"""

import multiprocessing
import os
import pathlib
import sys
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from harnesses import sweep
from harnesses.cell import Verdict
from harnesses.engines import worker
from harnesses.harness import Harness
from harnesses.selection import Selection


def _in_worker(x):
    assert jax.config.jax_enable_x64
    assert jax.config.jax_platforms == "cpu"
    assert x.dtype == np.int64
    assert os.environ["OMP_NUM_THREADS"] == "1"
    return x * 2


def catalogue() -> Mapping[str, Harness]:
    """The harnesses by name."""
    args = (np.array([1, 2], np.int64),)
    harnesses = [Harness("mul", f"case={i}", _in_worker, args) for i in range(2)]
    return {harness.name: harness for harness in harnesses}


def _settings() -> Any:
    return dict(os.environ), dict(jax.config.values)


def main(database: str, start: str) -> None:
    """Sweeps the harnesses, with a worker for each.

    Args:
      database: where results are recorded.
      start: how workers are started: "forked" by the fork server of the sweep, "forked-before" by
        one that the process has before the sweep, or "spawned".
    """
    if start == "forked-before":
        process = multiprocessing.get_context("forkserver").Process(target=os.getpid)
        process.start()
        process.join()
    if start == "spawned":
        multiprocessing.get_all_start_methods = lambda: ["spawn"]
    worker.TASKS_PER_WORKER = 1
    before = _settings()
    selection = Selection(modes=["eager"], targets=["tf"], share="none")
    report = sweep.sweep(selection, pathlib.Path(database), catalogue=catalogue, workers=1)
    assert _settings() == before
    assert [row.verdict for row in report.rows] == [Verdict.EQUAL] * 2, report.rows


if __name__ == "__main__":
    main(*sys.argv[1:])
