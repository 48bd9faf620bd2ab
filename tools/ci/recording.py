"""A plugin of pytest that records which sources each test reaches, and how long it takes.

    python3.12 -m pytest -p tools.ci.recording

Each process appends to a file of its own in the directory that LOWERING_RECORD names.
"""

import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tools.ci import observed

INTO = "LOWERING_RECORD"
# Where the processes that a test starts say what they see.
_OBSERVED_IN = "LOWERING_OBSERVED_IN"
_children = pathlib.Path(__file__).parent / "children"
_outcomes: dict[str, list[Any]] = {}


def pytest_configure(config: pytest.Config) -> None:
    observed.start()
    os.environ["LOWERING_CHECKOUT"] = str(observed.ROOT)
    path = [str(_children), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    into = pathlib.Path(os.environ[INTO])
    of_children = into / f"children-{os.getpid()}"
    of_children.unlink(missing_ok=True)
    os.environ[_OBSERVED_IN] = str(of_children)
    observed.restart()
    _outcomes[item.nodeid] = []
    try:
        return (yield)
    finally:
        del os.environ[_OBSERVED_IN]
        started = set(of_children.read_text().split()) if of_children.exists() else set()
        seen = observed.seen()
        if started:
            seen.discard(observed.PROCESS)
        record = {
            "test": item.nodeid,
            "seen": sorted(seen | started),
            "reports": _outcomes.pop(item.nodeid),
        }
        with open(into / f"tests-{os.getpid()}.jsonl", "a") as file:
            file.write(json.dumps(record) + "\n")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.nodeid in _outcomes:
        _outcomes[report.nodeid].append((report.when, report.outcome, round(report.duration, 3)))
