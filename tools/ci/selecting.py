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
from collections.abc import Collection, Iterable, Sequence

import pytest

# The environment variable that names the file of what is selected.
SELECTED = "LOWERING_SELECTED"
# One of so many tests that no change reaches is run.
ONE_IN = 5
# One of so many cases is run, where a change reaches most tests: of a function that has more than
# `_MANY_CASES`, and of one that takes far longer than `_BRIEF` seconds.
ONE_CASE_IN = 3
_MANY_CASES = 6
_BRIEF = 8.0
# Seconds that a test may take of which nothing is known.
_UNKNOWN = 10.0


@dataclasses.dataclass(frozen=True)
class Selected:
    """Which tests are run.

    Attributes:
      seed: draws the sample of tests that no change reaches.
      known: the names without parameters of those whose reach is known; all others are run.
      reached: those of them that a change reaches.
      seconds: how long tests take, as far as that is much.
      left_out: the names of those that something else runs.
      sampled: the names of those of whose cases a part is run, if they are many or take long.
    """

    seed: str
    known: Collection[str]
    reached: Collection[str]
    seconds: dict[str, float]
    left_out: Collection[str] = ()
    sampled: Collection[str] = ()

    def write(self, path: pathlib.Path) -> None:
        """Writes this as JSON."""
        data = {
            key: value if isinstance(value, str | dict) else sorted(value)
            for key, value in dataclasses.asdict(self).items()
        }
        path.write_text(json.dumps(data))

    @classmethod
    def read(cls, path: pathlib.Path) -> "Selected":
        """Reads a selection that `write` has written."""
        data = json.loads(path.read_text())
        for name in ("known", "reached", "left_out", "sampled"):
            data[name] = frozenset(data[name])
        return cls(**data)

    def of(self, tests: Iterable[str]) -> set[str]:
        """The tests that are run, out of all of them, by their names with parameters."""
        cases: dict[str, list[str]] = collections.defaultdict(list)
        for test in tests:
            cases[without_parameters(test)].append(test)
        return {test for name in cases for test in self._cases(name, cases[name])}

    def _cases(self, name: str, cases: Sequence[str]) -> Sequence[str]:
        """The cases of a test function that are run."""
        if name in self.left_out:
            return ()
        if name in self.known and name not in self.reached:
            return [case for case in cases if self._draw(case) % ONE_IN == 0]
        if name in self.sampled:
            # What is left of a case is the chance of one case more.
            chance = self._draw(name) % 1000 / 1000
            run = int(len(cases) * self._share(name, len(cases)) + chance)
            return sorted(cases, key=self._draw)[:run]
        return cases

    def _share(self, name: str, cases: int) -> float:
        """The share of the cases that is run where a change reaches most tests."""
        if cases > _MANY_CASES:
            return 1 / ONE_CASE_IN
        return min(1.0, max(1 / ONE_CASE_IN, _BRIEF / self.seconds.get(name, _BRIEF)))

    def first(self, test: str) -> float:
        """A key that sorts tests: those that may take long come first."""
        name = without_parameters(test)
        return -self.seconds.get(name, 0.0 if name in self.known else _UNKNOWN)

    def _draw(self, test: str) -> int:
        return zlib.crc32(f"{self.seed} {test}".encode())


def without_parameters(test: str) -> str:
    """The name of a test function, from that of a test such as `test_x.py::test[int8-eager]`."""
    return re.sub(r"\[.*", "", test, flags=re.DOTALL)


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """If CI runs the tests, removes those that are not selected, and sorts the longest first."""
    path = os.environ.get(SELECTED)
    if not path:
        return
    selected = Selected.read(pathlib.Path(path))
    run = selected.of(item.nodeid for item in items)
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in run])
    items[:] = [item for item in items if item.nodeid in run]
    items.sort(key=lambda item: selected.first(item.nodeid))


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
