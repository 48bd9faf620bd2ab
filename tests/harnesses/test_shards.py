"""Shards have each cell once, and take about as long as each other."""

import contextlib
import json
import pathlib

import pytest

from harnesses.cell import Cell, Verdict
from harnesses.database import Database, DatabaseError, Versions
from harnesses.harness import Harness, all_harnesses
from harnesses.selection import Selection
from harnesses.shards import Shard, take
from harnesses.times import TABLE, Times, write_means
from tests.harnesses.rows import row

VERSIONS = Versions("1", "1", "2", "3", "3.11")


def made(count: int) -> tuple[dict[str, Harness], dict[str, list[Cell]]]:
    """Harnesses, and cells of them."""
    harnesses = {f"sin_{i}": Harness("sin", str(i), None, dtype="float32") for i in range(count)}
    cells = {name: [Cell(name, mode, "tf") for mode in ("eager", "graph")] for name in harnesses}
    return harnesses, cells


def load(cells: dict[str, list[Cell]], times: Times) -> float:
    return sum(times.of("sin", c) for of_harness in cells.values() for c in of_harness)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_shards_have_each_cell_once_and_are_balanced(count):
    harnesses, selected = made(500)
    times = Times({}, {c: 1 + i * i % 97 for i, of in enumerate(selected.values()) for c in of})
    shards = [take(Shard(i, count), selected, harnesses, times) for i in range(1, count + 1)]
    taken = [c for shard in shards for of_harness in shard.values() for c in of_harness]
    assert sorted(map(str, taken)) == sorted(str(c) for of in selected.values() for c in of)
    loads = [load(shard, times) for shard in shards]
    assert max(loads) <= load(selected, times) / count + 2 * 97


def test_cells_that_take_no_time_are_dealt_out_too():
    harnesses, selected = made(30)
    times = Times({"": {"": 0.0}})
    shards = [take(Shard(i, 3), selected, harnesses, times) for i in (1, 2, 3)]
    assert [len(shard) for shard in shards] == [10, 10, 10]


def test_more_shards_than_harnesses():
    harnesses, selected = made(3)
    total = 10**12
    taken = [take(Shard(i, total), selected, harnesses, Times({})) for i in (1, 2, 3, 4, total)]
    assert [len(shard) for shard in taken] == [1, 1, 1, 0, 0]


def test_shards_do_not_depend_on_the_order_of_harnesses():
    harnesses, selected = made(50)
    backwards = dict(reversed(selected.items()))
    times = Times({"sin": {"eager": 0.1, "graph": 0.3}})
    for number in (1, 2, 3):
        shard = Shard(number, 3)
        assert take(shard, selected, harnesses, times) == take(shard, backwards, harnesses, times)


def test_shards_of_all_harnesses_by_the_committed_times():
    harnesses = all_harnesses()
    selected = Selection(per_harness="all", share="none").cells(harnesses)
    times = Times.committed()
    loads = [
        sum(
            times.of(harnesses[name].primitive, c)
            for name, cells in take(Shard(number, 4), selected, harnesses, times).items()
            for c in cells
        )
        for number in range(1, 5)
    ]
    assert max(loads) < 1.01 * min(loads)


@pytest.mark.parametrize(
    "text", ["", "1", "0/2", "3/2", "1/0", "-1/2", "a/b", "1/2/3", "½/2", "1/" + "9" * 5000]
)
def test_what_is_no_shard(text):
    with pytest.raises(ValueError, match="shard"):
        Shard.parse(text)


def test_a_shard_is_written_as_it_is_read():
    assert str(Shard.parse("2/3")) == "2/3"


def test_times_come_from_the_nearest_cells_that_are_known():
    known = Cell("sin_1", "eager", "tf")
    times = Times({"sin": {"graph": 2, "": 3}, "": {"eager": 4, "": 5}}, {known: 1})
    assert times.of("sin", known) == 1
    assert times.of("sin", Cell("sin_2", "graph", "tf")) == 2
    assert times.of("sin", Cell("sin_2", "eager", "tf")) == 3
    assert times.of("cos", Cell("cos_2", "eager", "tf")) == 4
    assert times.of("cos", Cell("cos_2", "compiled", "tf")) == 5
    assert Times({}).of("cos", known) > 0


def test_times_of_a_file_of_results(tmp_path):
    path = tmp_path / "sweep.sqlite"
    with contextlib.closing(Database(path)) as database:
        sweep, _ = database.begin(VERSIONS, {}, "sources", fresh=False)
        places = {"mode": "eager", "target": "tf", "device": "cpu"}
        rows = [row(f"sin_{i}", Verdict.EQUAL, seconds=float(i), **places) for i in (1, 3)]
        database.record(sweep, rows)
    times = Times.recorded(path)
    assert times.of("sin", Cell("sin_3", "eager", "tf")) == 3
    assert times.of("sin", Cell("sin_4", "eager", "tf")) == 2
    with pytest.raises(DatabaseError):
        Times.recorded(tmp_path / "missing.sqlite")


def test_the_table_keeps_what_a_sweep_has_not_run(tmp_path):
    path: pathlib.Path = tmp_path / "times.json"
    write_means(path, [row("sin_1", Verdict.EQUAL, mode="eager", seconds=1.0)])
    write_means(path, [row("sin_1", Verdict.EQUAL, mode="graph", seconds=2.0)])
    means = json.loads(path.read_text())
    assert means["sin"] == {"eager": 1.0, "graph": 2.0, "": 2.0}
    assert TABLE.exists()
