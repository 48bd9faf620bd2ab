"""Figures of benches are kept in files of results, and compared."""

import contextlib
import sqlite3

import pytest

from harnesses.database import Database
from results import figures
from results.figures import Bench, Measured, Place
from tools import compare_results

BENCH = Bench("python -m tools.bench", "a processor", {"jax": "1"}, "2026-01-01")
PLACE = Place("lstm, batch 1", "graph, tf / jax.jit")
TIME = Place("lstm, batch 1", "jax.jit")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.sqlite"


def test_what_is_recorded_is_read(path):
    figures.record(path, BENCH, {PLACE: Measured(1.2, 1.1, 1.3), TIME: Measured(5, 4, 6, "ms")})
    assert figures.read(path) == {
        PLACE: (BENCH, Measured(1.2, 1.1, 1.3)),
        TIME: (BENCH, Measured(5, 4, 6, "ms")),
    }


def test_the_last_bench_counts(path):
    figures.record(path, BENCH, {PLACE: Measured(1.2, 1.1, 1.3), TIME: Measured(5, 4, 6, "ms")})
    later = Bench("again", "another", {}, "2026-01-02")
    figures.record(path, later, {PLACE: Measured(2, 2, 2)})
    assert figures.read(path)[PLACE] == (later, Measured(2, 2, 2))
    assert figures.read(path)[TIME][0] == BENCH


def test_a_file_of_sweeps_gets_figures(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        with contextlib.closing(Database(path)):
            pass
        connection.execute("DROP TABLE figures")
        connection.execute("DROP TABLE benches")
        connection.execute("PRAGMA user_version = 2")
        connection.commit()
    assert figures.read(path) == {}
    figures.record(path, BENCH, {PLACE: Measured(1, 1, 1)})
    assert len(figures.read(path)) == 1


def test_what_is_slower():
    old = {PLACE: (BENCH, Measured(1.0, 0.9, 1.1)), TIME: (BENCH, Measured(5, 4, 6, "ms"))}
    new = {PLACE: (BENCH, Measured(1.3, 1.2, 1.4)), TIME: (BENCH, Measured(7, 6.1, 8, "ms"))}
    assert [place for place, *_ in figures.slower(old, new)] == [PLACE]
    assert [place for place, *_ in figures.faster(new, old)] == [PLACE]
    assert not figures.slower(old, old) and not figures.faster(old, old)


def test_times_of_another_machine_are_not_compared():
    other = Bench("", "another", {}, "")
    old = {PLACE: (BENCH, Measured(1, 1, 1)), TIME: (BENCH, Measured(5, 5, 5, "ms"))}
    new = {PLACE: (other, Measured(2, 2, 2)), TIME: (other, Measured(50, 50, 50, "ms"))}
    assert [place for place, *_ in figures.slower(old, new)] == [PLACE]


@pytest.mark.parametrize("fails", [False, True])
def test_compare_results_says_what_is_slower(path, tmp_path, capsys, fails):
    figures.record(path, BENCH, {PLACE: Measured(1.0, 0.9, 1.1)})
    other = tmp_path / "other.sqlite"
    figures.record(other, BENCH, {PLACE: Measured(1.5, 1.4, 1.6)})
    options = ["--slower-fails"] if fails else []
    assert compare_results.main([str(path), str(other), *options]) == int(fails)
    printed = capsys.readouterr().out
    assert "slower: lstm, batch 1, graph, tf / jax.jit: 1.000 (0.900 to 1.100) -> 1.500" in printed
    assert "1 figure compared" in printed


def test_how_figures_are_printed():
    assert str(Measured(1.23456, 1.1, 1.3)) == "1.235 (1.100 to 1.300)"
    assert str(Measured(12.3, 12.3, 12.3, "MB")) == "12.3 MB"
