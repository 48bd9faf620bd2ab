"""How long cells take, as recorded by earlier sweeps: what shards are balanced by.

`g3doc/times.json` is a small table of the mean of each primitive and mode, which `make docs` writes
from the sweeps that it imports. A file of results says it for each cell.
"""

import collections
import contextlib
import json
import pathlib
from collections.abc import Iterable, Mapping

from harnesses.cell import Cell
from results.files import explained, open_for_reading
from results.rows import Row

TABLE = pathlib.Path(__file__).parents[1] / "g3doc" / "times.json"

# The mean of all cells, where nothing is known about a primitive and mode.
_ANY = ""


class Times:
    """Estimates of how long cells take, in seconds."""

    def __init__(
        self, means: Mapping[str, Mapping[str, float]], cells: Mapping[Cell, float] | None = None
    ):
        """Makes estimates.

        Args:
          means: the mean by primitive and mode; "" stands for all of them.
          cells: the times of cells that are known.
        """
        self._means = means
        self._cells = cells or {}

    @classmethod
    def committed(cls) -> "Times":
        """The times of the committed table."""
        return cls(read_means(TABLE))

    @classmethod
    def recorded(cls, path: pathlib.Path) -> "Times":
        """The times of a file of results.

        Raises:
          DatabaseError: if it cannot be used.
        """
        with contextlib.closing(open_for_reading(path)) as connection, explained(path):
            found = connection.execute(
                "SELECT harness, mode, target, device, variant, primitive, seconds FROM results "
                "JOIN sweeps ON sweeps.id = results.sweep ORDER BY started, sweeps.id"
            ).fetchall()
        # The latest sweep of a cell counts.
        cells = {Cell(*values[:5]): values[6] for values in found}
        return cls(_means((values[5], values[1], values[6]) for values in found), cells)

    def of(self, primitive: str, cell: Cell) -> float:
        """How long a cell takes: as recorded, or as cells of its primitive and mode do."""
        if cell in self._cells:
            return self._cells[cell]
        for row in (primitive, _ANY):
            for column in (cell.mode, _ANY):
                if column in self._means.get(row, {}):
                    return self._means[row][column]
        return 1.0


def read_means(path: pathlib.Path) -> Mapping[str, Mapping[str, float]]:
    """The table of means in a file; an empty one if there is no file."""
    return json.loads(path.read_text()) if path.exists() else {}


def write_means(path: pathlib.Path, rows: Iterable[Row]) -> None:
    """Writes a table of means, with a line for each primitive.

    Primitives and modes that no row has keep their means. The means of all primitives together are
    replaced only if the rows have at least half of the primitives.
    """
    rows = list(rows)
    means = {primitive: dict(by_mode) for primitive, by_mode in read_means(path).items()}
    are_few = 2 * len({r.primitive for r in rows}) < len(means)
    for primitive, by_mode in _means((r.primitive, r.mode, r.seconds) for r in rows).items():
        if primitive == _ANY and are_few:
            continue
        means.setdefault(primitive, {}).update(by_mode)
    lines = [f" {json.dumps(p)}: {json.dumps(means[p], sort_keys=True)}" for p in sorted(means)]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _means(recorded: Iterable[tuple[str, str, float]]) -> dict[str, dict[str, float]]:
    sums: dict[tuple[str, str], list[float]] = collections.defaultdict(lambda: [0.0, 0])
    for primitive, mode, seconds in recorded:
        for key in ((primitive, mode), (primitive, _ANY), (_ANY, mode), (_ANY, _ANY)):
            sums[key][0] += seconds
            sums[key][1] += 1
    means: dict[str, dict[str, float]] = {}
    for (primitive, mode), (total, count) in sorted(sums.items()):
        means.setdefault(primitive, {})[mode] = round(total / count, 4)
    return means
