"""Joins files of results, as of the shards of a sweep or of several machines, to one.

    python -m tools.merge_results --into sweep.sqlite shard1.sqlite shard2.sqlite shard3.sqlite

Shards of a sweep become one sweep, which is complete if it has all cells; if it is not, the
command that swept, without --shard, runs the cells that are missing. Files of different versions
are refused unless --mix-versions says that the new file is to have a sweep of each. Sweeps of the
same cells by other sources, and cells that two files have with different outcomes, are always
refused.

The exit code is 0 if all sweeps are complete, 1 if cells are missing, 2 if nothing was written.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence

from harnesses.database import Database, now
from results.files import DatabaseError
from results.rows import CELL, Row, Sweep
from tools.terminal import failed, run


class MergeError(ValueError):
    """Files of results do not belong together, for the reason that the message gives."""


@dataclasses.dataclass(frozen=True)
class Source:
    """A sweep in a file, with its results."""

    path: pathlib.Path
    sweep: Sweep
    rows: Sequence[Row]


def merge(
    paths: Sequence[pathlib.Path], into: pathlib.Path, mix_versions: bool = False
) -> list[tuple[Sweep, int]]:
    """Joins files of results to a new one, which is written when all is well.

    Args:
      paths: the files; they are left as they are.
      into: the new file.
      mix_versions: whether it may have sweeps of several versions.

    Returns:
      The sweeps of the new file, each with the number of its cells.

    Raises:
      MergeError: if the files do not belong together, or the new file exists.
      DatabaseError: if a file cannot be used.
    """
    if into.exists() and (not into.is_file() or into.stat().st_size):
        raise MergeError(f"{into} exists; name a new file")
    for beside in _beside(into):
        if beside.exists():
            # SQLite would take it for a part of the new file.
            raise MergeError(f"{beside} is left of another file; remove it, or name a new file")
    sources = [source for path in paths for source in _read(path)]
    if not mix_versions:
        _check_versions(sources)
    _check_cells(sources)
    groups = collections.defaultdict(list)
    for source in sources:
        groups[source.sweep.versions, source.sweep.selection].append(source)
    merged = [_join(of_group) for of_group in groups.values()]

    # The file gets its name when it is complete.
    partial = into.with_name(f"{into.name}.{os.getpid()}")
    try:
        with contextlib.closing(Database(partial)) as database:
            for sweep, rows in merged:
                database.add(sweep, rows.values())
        partial.replace(into)
    except OSError as error:
        raise MergeError(f"{into} cannot be written: {error.strerror}") from error
    finally:
        for path in (partial, *_beside(partial)):
            path.unlink(missing_ok=True)
    return [(sweep, len(rows)) for sweep, rows in merged]


def _beside(path: pathlib.Path) -> list[pathlib.Path]:
    """The files that SQLite has beside one."""
    return [path.with_name(f"{path.name}{end}") for end in ("-wal", "-shm", "-journal")]


def _read(path: pathlib.Path) -> list[Source]:
    """The sweeps in a file, without those that a newer one is about to replace."""
    with contextlib.closing(Database(path, writable=False)) as database:
        latest = {(s.versions, s.selection, s.shard): s for s in database.sweeps()}
        sources = [Source(path, sweep, database.rows(sweep.id)) for sweep in latest.values()]
    if not sources:
        raise MergeError(f"{path} has no sweep")
    return sources


def _check_versions(sources: Sequence[Source]) -> None:
    """Raises an error if the sweeps ran with different versions."""
    by_versions = collections.defaultdict(list)
    for source in sources:
        by_versions[source.sweep.versions].append(source.path)
    if len(by_versions) > 1:
        found = []
        for versions, paths in by_versions.items():
            each = ", ".join(f"{k} {v}" for k, v in dataclasses.asdict(versions).items())
            found.append(f"{each}: {', '.join(sorted({str(path) for path in paths}))}")
        raise MergeError(
            "the files have sweeps of different versions; --mix-versions keeps a sweep of each\n"
            + "\n".join(found)
        )


def _check_cells(sources: Sequence[Source]) -> None:
    """Raises an error if files disagree on a cell, or have it by different sources."""
    found: dict[tuple, tuple[Source, Row]] = {}
    for source in sources:
        for row in source.rows:
            cell = tuple(getattr(row, column) for column in CELL)
            first, other = found.setdefault((source.sweep.versions, *cell), (source, row))
            if first.path == source.path:
                continue
            place = f"{first.path} and {source.path}"
            if (other.outcome, other.verdict) != (row.outcome, row.verdict):
                raise MergeError(
                    f"{place} disagree on {', '.join(cell)}: {other.outcome} and {row.outcome}"
                )
            if first.sweep.fingerprint != source.sweep.fingerprint:
                raise MergeError(f"{place} have {', '.join(cell)} by different sources")


def _join(sources: Sequence[Source]) -> tuple[Sweep, Mapping[tuple, Row]]:
    """Joins sweeps of one selection by the same versions; returns the sweep, and its results."""
    first = sources[0]
    for source in sources[1:]:
        for what in ("fingerprint", "turn"):
            one, other = getattr(first.sweep, what), getattr(source.sweep, what)
            if one != other:
                raise MergeError(
                    f"{first.path} and {source.path} have sweeps of the same selection by "
                    f"different sources: {what} {one} and {other}"
                )
    rows: dict[tuple, Row] = {}
    for source in sources:
        for row in source.rows:
            rows.setdefault(tuple(getattr(row, column) for column in CELL), row)
    sweeps = [source.sweep for source in sources]
    counts = {sweep.cells for sweep in sweeps} - {None}
    if len(counts) > 1:
        raise MergeError(
            f"{', '.join(str(s.path) for s in sources)} have shards of sweeps of different sizes"
        )
    cells = counts.pop() if counts else None
    ended = [sweep.finished for sweep in sweeps if sweep.finished]
    # Files of before version 2 do not have the number of cells, nor shards.
    is_complete = len(rows) == cells if cells is not None else bool(ended)
    joined = dataclasses.replace(
        first.sweep,
        shard="",
        cells=cells,
        started=min(sweep.started for sweep in sweeps),
        finished=max(ended, default=now()) if is_complete else None,
    )
    return joined, rows


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.merge_results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE")
    parser.add_argument("--into", type=pathlib.Path, required=True, metavar="NEW")
    parser.add_argument(
        "--mix-versions", action="store_true", help="keep sweeps of several versions, side by side"
    )
    args = parser.parse_args(argv)
    try:
        merged = merge(args.files, args.into, args.mix_versions)
    except (MergeError, DatabaseError) as error:
        return failed(error)
    for sweep, count in merged:
        of = "" if sweep.cells is None else f" of {sweep.cells:,}"
        state = "complete" if sweep.finished else "not complete"
        print(f"{sweep.versions}: {count:,}{of} cells, {state}; {_selected(sweep)}")
    return 0 if all(sweep.finished for sweep, _ in merged) else 1


def _selected(sweep: Sweep) -> str:
    """The selection of a sweep in a few words."""
    selection = json.loads(sweep.selection)
    parts = [f"{key} {' '.join(x)}" for key, x in selection.items() if isinstance(x, list)]
    return ", ".join(part for part in parts if not part.endswith(" *"))


if __name__ == "__main__":
    run(main)
