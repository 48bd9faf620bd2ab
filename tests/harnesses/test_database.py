"""A database holds the latest sweep of each selection and versions."""

import pytest

from harnesses.cell import Verdict
from harnesses.database import Database, Versions
from harnesses.selection import Selection
from tests.harnesses.rows import row

VERSIONS = Versions("1", "1", "2", "3", "3.11")


@pytest.fixture
def database(tmp_path):
    database = Database(tmp_path / "sweep.sqlite")
    yield database
    database.close()


def test_only_an_unfinished_sweep_of_the_same_sources_is_continued(database):
    selection = Selection().as_data()
    first, _ = database.begin(VERSIONS, selection, "sources", fresh=False)
    database.record(first, [row("sin_1", Verdict.EQUAL)])
    assert database.begin(VERSIONS, selection, "sources", fresh=False) == (first, 0)
    assert [r.harness for r in database.rows(first)] == ["sin_1"]

    changed, _ = database.begin(VERSIONS, selection, "other sources", fresh=False)
    assert database.rows(changed) == []
    database.record(changed, [row("sin_1", Verdict.EQUAL)])
    again, _ = database.begin(VERSIONS, selection, "other sources", fresh=True)
    assert database.rows(again) == []

    last, _ = database.begin(VERSIONS, selection, "other sources", fresh=False)
    database.finish(last)
    assert database.finished(selection) == [(last, VERSIONS)]


def test_a_complete_sweep_stays_until_the_next_one_is_complete(database):
    selection = Selection().as_data()

    def begin(name, sources="sources", **options):
        sweep, _ = database.begin(VERSIONS, selection, sources, fresh=True, **options)
        database.record(sweep, [row(name, Verdict.EQUAL)])
        return sweep

    def names():
        return [r.harness for sweep in database.sweeps() for r in database.rows(sweep.id)]

    database.finish(begin("shard", shard="1/2"))
    first = begin("first")
    database.finish(first)
    begin("interrupted")
    second = begin("second", "other sources")
    assert names() == ["shard", "first", "second"]
    assert database.finished(selection) == [(first, VERSIONS)]
    database.finish(second)
    assert names() == ["shard", "second"]
    assert database.finished(selection) == [(second, VERSIONS)]


def test_sweeps_of_other_versions_are_kept(database):
    selection = Selection().as_data()
    other = Versions("9", "9", "2", "3", "3.12")
    for versions in (VERSIONS, other):
        sweep_id, _ = database.begin(versions, selection, "sources", fresh=False)
        database.record(sweep_id, [row(f"sin_{versions.jax}", Verdict.EQUAL)])
        database.finish(sweep_id)
    found = {
        versions: database.rows(sweep_id) for sweep_id, versions in database.finished(selection)
    }
    assert {v: [r.harness for r in rows] for v, rows in found.items()} == {
        VERSIONS: ["sin_1"],
        other: ["sin_9"],
    }


def test_the_turn_is_the_number_of_sweeps_that_were_finished(database):
    selection = Selection().as_data()
    turns = []
    for finishes in (True, False, True, True):
        sweep_id, turn = database.begin(VERSIONS, selection, "sources", fresh=True)
        turns.append(turn)
        if finishes:
            database.finish(sweep_id)
    assert turns == [0, 1, 1, 2]
