"""Compares two sweeps: what got better, worse or slower, and which limitations are out of date.

    python -m tools.compare_results old.sqlite new.sqlite

Cells that both have run are compared. If each file has one combination of versions, these may
differ: that is how a new version of JAX or TensorFlow is tried. Of a file with several, the same
versions of JAX are compared. A cell is worse if it was equal and no longer is, if it is unexpected
and was limited, or if it crashes where it gave an error; or if it is unexpected and was not run
before. It is slower if it takes both at least --slower times as long as before, and half a second
more.

Figures of benches (`results.figures`) are compared, too: what both have, and of which the quarters
of the turns do not overlap. A slower figure counts as a slower cell does.

The exit code is 0 if no cell is worse, 1 if one is, and 2 if a file cannot be used or there is
nothing to compare. Times depend on what else a machine does; where nothing else runs,
`--slower-fails` makes a slower cell a regression, too.
"""

import argparse
import collections
import contextlib
import dataclasses
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from results import figures, rows
from results.files import DatabaseError, explained, open_for_reading
from results.outcome import Outcome, Verdict
from results.rows import Versions
from tools.terminal import failed, run

# A cell that takes this much longer, in seconds, is not slower by chance.
_NOTICEABLE = 0.5
# The number of cells to print in each group.
_SHOWN = 20


class Place(NamedTuple):
    """The names by which the same cell is found in two sweeps."""

    harness: str
    mode: str
    target: str
    device: str
    variant: str

    def __str__(self) -> str:
        variant = "" if self.variant == "plain" else f" ({self.variant})"
        return f"{self.harness}{variant}, {self.mode} on {self.target} ({self.device})"


class Found(NamedTuple):
    """What a sweep found in a cell."""

    outcome: str
    verdict: str
    seconds: float
    primitive: str
    limitation: str
    message: str


# Where the outcome and the verdict stand before the time.
_SECONDS = Found._fields.index("seconds")


@dataclasses.dataclass
class Comparison:
    """What is different between two sweeps.

    Attributes:
      worse: the cells that got worse, with what was found before (None: nothing) and now.
      better: the cells that got better.
      slower: the cells that take longer, the worst first.
      stale: how many cells became unexpected passes, by primitive and the reason of the limitation.
      compared: how many cells both sweeps have.
      gone: how many cells only the old one has.
      added: how many cells only the new one has.
      seconds: the time of all compared cells, before and now.
    """

    worse: list[tuple[Place, Found | None, Found]]
    better: list[tuple[Place, Found, Found]]
    slower: list[tuple[Place, Found, Found]]
    stale: Mapping[tuple[str, str], int]
    compared: int
    gone: int
    added: int
    seconds: tuple[float, float]


# The fields of `Found` by those of `Place`. There are many cells, and few are different: only these
# get names.
Cells = Mapping[tuple[str, ...], tuple]


def read(path: pathlib.Path) -> dict[Versions, Cells]:
    """The cells of a file of results by versions; the latest sweep of a cell counts.

    Variants that JAX itself cannot make are left out.

    Raises:
      DatabaseError: if the file cannot be used.
    """
    columns = ", ".join((*rows.CELL, *Found._fields))
    found: dict[Versions, dict[tuple[str, ...], tuple]] = {}
    with contextlib.closing(open_for_reading(path)) as connection, explained(path):
        sweeps = connection.execute(
            f"SELECT id, {', '.join(rows.VERSIONS)} FROM sweeps ORDER BY started, id"
        ).fetchall()
        for sweep, *versions in sweeps:
            cells = found.setdefault(Versions(*versions), {})
            cursor = connection.execute(
                f"SELECT {columns} FROM results WHERE sweep = ? AND verdict != ?",
                (sweep, Verdict.NO_VARIANT),
            )
            cells.update({values[:5]: values[5:] for values in cursor})
    return {versions: cells for versions, cells in found.items() if cells}


def compare(old: Cells, new: Cells, slower: float = 2.0) -> Comparison:
    """Compares the cells of two sweeps.

    Args:
      old: the cells of the old one.
      new: the cells of the new one.
      slower: how many times as long a slower cell takes, at least.
    """
    result = Comparison([], [], [], collections.Counter(), 0, 0, 0, (0.0, 0.0))
    stale: collections.Counter[tuple[str, str]] = collections.Counter()
    before = now = 0.0
    for key, values in new.items():
        known = old.get(key)
        if known is not None:
            result.compared += 1
            before += known[_SECONDS]
            now += values[_SECONDS]
            if known[:_SECONDS] == values[:_SECONDS] and not _is_slower(known, values, slower):
                continue
        place, found = Place(*key), Found(*values)
        was = None if known is None else Found(*known)
        if found.verdict == Verdict.STALE and (was is None or was.verdict != Verdict.STALE):
            stale[found.primitive, found.limitation] += 1
        if was is None:
            if found.verdict == Verdict.UNEXPECTED:
                result.worse.append((place, was, found))
            continue
        change = _badness(found) - _badness(was)
        if change > 0:
            result.worse.append((place, was, found))
        elif change < 0:
            result.better.append((place, was, found))
        elif _is_slower(was, found, slower):
            result.slower.append((place, was, found))
    result.slower.sort(key=lambda of: of[1].seconds - of[2].seconds)
    result.worse.sort(key=lambda of: (-_badness(of[2]), of[0]))
    result.stale = stale
    result.gone = len(old) - result.compared
    result.added = len(new) - result.compared
    result.seconds = before, now
    return result


def _badness(found: Found) -> int:
    """A number that is larger the worse a result is."""
    if found.outcome == Outcome.EQUAL:
        return 0
    if found.verdict == Verdict.LIMITED:
        return 1
    if found.outcome == Outcome.DIFFERENT:
        return 2
    return 4 if found.outcome in (Outcome.CRASH, Outcome.TIMEOUT) else 3


def _is_slower(was: tuple, found: tuple, factor: float) -> bool:
    before = was[_SECONDS]
    return found[_SECONDS] >= max(factor * before, before + _NOTICEABLE)


def pairs(
    old: Mapping[Versions, Cells], new: Mapping[Versions, Cells]
) -> list[tuple[Versions, Versions]]:
    """Which versions of two files are compared: the only ones of each, or those of the same JAX."""
    if len(old) == len(new) == 1:
        return list(zip(old, new, strict=True))
    latest = {versions.jax: versions for versions in old}
    return [(latest[versions.jax], versions) for versions in new if versions.jax in latest]


def describe(comparison: Comparison) -> list[str]:
    """What is different between two sweeps, as lines to print."""
    lines = []

    def group(title: str, cells: Iterable[str]) -> None:
        cells = list(cells)
        if cells:
            lines.extend([f"{title}:", *(f"  {cell}" for cell in cells[:_SHOWN])])
            if len(cells) > _SHOWN:
                lines.append(f"  ... and {len(cells) - _SHOWN} more")

    def changed(place: Place, was: Found | None, found: Found) -> str:
        message = f": {found.message[:300]}" if found.outcome != Outcome.EQUAL else ""
        return f"{place}: {_result(was)} -> {_result(found)}{message}"

    group("worse", (changed(*of) for of in comparison.worse))
    group("better", (changed(*of) for of in comparison.better))
    group(
        "slower",
        (
            f"{place}: {was.seconds:.2f} s -> {found.seconds:.2f} s"
            for place, was, found in comparison.slower
        ),
    )
    group(
        "limitations with unexpected passes",
        (
            f"{primitive}: {reason!r} ({_count(cells, 'cell')})"
            for (primitive, reason), cells in sorted(comparison.stale.items())
        ),
    )
    before, now = comparison.seconds
    lines.append(
        f"{_count(comparison.compared, 'cell')} compared, {comparison.gone:,} gone, "
        f"{comparison.added:,} added; time {before:.1f} s -> {now:.1f} s"
    )
    lines.append(
        f"{len(comparison.worse):,} worse, {len(comparison.better):,} better, "
        f"{len(comparison.slower):,} slower, "
        f"{_count(len(comparison.stale), 'limitation')} with new unexpected passes"
    )
    return lines


def _result(found: Found | None) -> str:
    if found is None:
        return "not run"
    if found.verdict in (found.outcome, Verdict.UNEXPECTED):
        return found.outcome
    return f"{found.outcome} ({found.verdict})"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + "s" * (number != 1)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.compare_results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", type=pathlib.Path, metavar="OLD")
    parser.add_argument("new", type=pathlib.Path, metavar="NEW")
    parser.add_argument(
        "--slower",
        type=float,
        default=2.0,
        metavar="FACTOR",
        help="how many times as long as before a slower cell takes; %(default)s by default",
    )
    parser.add_argument(
        "--slower-fails", action="store_true", help="the exit code is 1 if a cell is slower, too"
    )
    args = parser.parse_args(argv)
    if not args.slower >= 1:
        parser.error("--slower takes a number of at least 1")
    try:
        old, new = read(args.old), read(args.new)
        benched = figures.read(args.old), figures.read(args.new)
    except DatabaseError as error:
        return failed(error)
    compared = pairs(old, new)
    slower = figures.slower(*benched)
    print("".join(f"{line}\n" for line in _describe_figures(*benched)), end="")
    if not compared and figures.common(*benched):
        return 1 if slower and args.slower_fails else 0
    if not compared:
        return failed(f"{_nothing(args.old, old)}; {_nothing(args.new, new)}")
    status = 1 if slower and args.slower_fails else 0
    for before, now in compared:
        print(f"{before} -> {now}" if before != now else f"{now}")
        comparison = compare(old[before], new[now], args.slower)
        if not comparison.compared:
            return failed(f"{args.old} and {args.new} have no cell in common")
        print("\n".join(describe(comparison)))
        if comparison.worse or (args.slower_fails and comparison.slower):
            status = 1
    return status


def _describe_figures(old: figures.Figures, new: figures.Figures) -> list[str]:
    """What is different between the figures of two files, as lines to print."""
    lines = []
    for title, changed in (("slower", figures.slower), ("faster", figures.faster)):
        for place, was, now in changed(old, new):
            lines.append(f"{title}: {place.program}, {place.figure}: {was} -> {now}")
    both = len(list(figures.common(old, new)))
    return [*lines, f"{_count(both, 'figure')} compared"] if both else []


def _nothing(path: pathlib.Path, found: Mapping[Versions, Cells]) -> str:
    return f"{path} has results of {', '.join(map(str, found)) or 'nothing'}"


if __name__ == "__main__":
    run(main)
