"""Tests that CI runs: those that a change can reach, and a sample of the others.

LOWERING_SELECTED names a file of `Selected.write`, which all processes of pytest read.
"""

import collections
import dataclasses
import json
import os
import pathlib
import re
import zlib
from collections.abc import Collection, Iterable

import pytest

# The environment variable that names the file of what is selected.
SELECTED = "LOWERING_SELECTED"
# One of so many tests that no change reaches is run.
ONE_IN = 5


@dataclasses.dataclass(frozen=True)
class Selected:
    """Which tests are run.

    Attributes:
      seed: draws the sample of tests that no change reaches.
      known: the names without parameters of those whose reach is known; all others are run.
      reached: those of them that a change reaches.
      seconds: how long tests take, as far as that is much.
      left_out: the names of those that something else runs.
    """

    seed: str
    known: Collection[str]
    reached: Collection[str]
    seconds: dict[str, float]
    left_out: Collection[str] = ()

    def write(self, path: pathlib.Path) -> None:
        """Writes this as JSON."""
        data = {
            key: value if isinstance(value, str | dict) else sorted(value)
            for key, value in dataclasses.asdict(self).items()
        }
        path.write_text(json.dumps(data))

    @classmethod
    def read(cls, path: pathlib.Path) -> "Selected":
        """What `write` has written."""
        data = json.loads(path.read_text())
        for name in ("known", "reached", "left_out"):
            data[name] = frozenset(data[name])
        return cls(**data)

    def has(self, test: str) -> bool:
        """Whether a test is run, by its name with parameters."""
        name = without_parameters(test)
        if name in self.left_out:
            return False
        if name not in self.known or name in self.reached:
            return True
        return zlib.crc32(f"{self.seed} {test}".encode()) % ONE_IN == 0


def without_parameters(test: str) -> str:
    """The name of a test function, from that of a test such as `test_x.py::test[int8-eager]`."""
    return re.sub(r"\[.*", "", test, flags=re.DOTALL)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests that are selected, if CI runs them, those that take longest first."""
    path = os.environ.get(SELECTED)
    if not path:
        return
    selected = Selected.read(pathlib.Path(path))
    kept = [item for item in items if selected.has(item.nodeid)]
    config.hook.pytest_deselected(items=[item for item in items if not selected.has(item.nodeid)])
    kept.sort(key=lambda item: -selected.seconds.get(without_parameters(item.nodeid), 0.0))
    items[:] = kept


def summarize(terminal: pytest.TerminalReporter) -> None:
    """Says how long the tests of each directory took, if CI runs them."""
    if not os.environ.get(SELECTED):
        return
    reports = [
        report
        for of_outcome in terminal.stats.values()
        for report in of_outcome
        if isinstance(report, pytest.TestReport)
    ]
    terminal.section("time by directory, of all processes")
    for line in by_directory((report.nodeid, report.duration) for report in reports):
        terminal.write_line(line)


def by_directory(durations: Iterable[tuple[str, float]]) -> list[str]:
    """A line for each directory of tests, that with the longest time first.

    Args:
      durations: pairs of the name of a test and seconds.
    """
    seconds: dict[str, float] = collections.defaultdict(float)
    tests: dict[str, set[str]] = collections.defaultdict(set)
    for name, duration in durations:
        file = pathlib.PurePath(name.split("::")[0])
        directory = str(file if len(file.parts) <= 2 else file.parent)
        seconds[directory] += duration
        tests[directory].add(name)
    return [
        f"{seconds[name]:8.1f} s  {len(tests[name]):5} tests  {name}"
        for name in sorted(seconds, key=lambda name: -seconds[name])
    ]
