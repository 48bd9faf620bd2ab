"""Shards are joined to the sweep that they are parts of, and nothing is mixed unsaid."""

import contextlib
import dataclasses
import subprocess
import sys

import pytest

from harnesses.cell import Verdict
from harnesses.database import Database
from tests.helpers import ROOT
from tests.tools.synthetic import VERSIONS, cell, write
from tools import merge_results

OTHER = dataclasses.replace(VERSIONS, jax="2.0")


@pytest.fixture
def merge(tmp_path, capsys):
    """Runs the command on files of a temporary directory; returns code, output and errors."""

    def merge(*names, into="all.sqlite", options=()):
        argv = [*options, "--into", str(tmp_path / into), *(str(tmp_path / name) for name in names)]
        code = merge_results.main(argv)
        return code, *capsys.readouterr()

    return merge


def sweeps(path):
    with contextlib.closing(Database(path, writable=False)) as database:
        return [(s, [r.harness for r in database.rows(s.id)]) for s in database.sweeps()]


def write_shards(tmp_path, count=3, cells=None, **options):
    for i in range(1, count + 1):
        rows = [cell(f"sin_{i}"), cell(f"cos_{i}", mode="graph")]
        total = 2 * count if cells is None else cells
        path = tmp_path / f"{i}.sqlite"
        write(path, rows, shard=f"{i}/{count}", cells=total, **options)
    return [f"{i}.sqlite" for i in range(1, count + 1)]


def test_shards_become_one_complete_sweep(tmp_path, merge):
    names = write_shards(tmp_path)
    before = [(tmp_path / name).read_bytes() for name in names]
    code, output, _ = merge(*names)
    assert code == 0
    assert "6 of 6 cells, complete" in output
    ((sweep, harnesses),) = sweeps(tmp_path / "all.sqlite")
    assert sweep.shard == "" and sweep.finished
    assert harnesses == ["cos_1", "cos_2", "cos_3", "sin_1", "sin_2", "sin_3"]
    assert [(tmp_path / name).read_bytes() for name in names] == before
    with contextlib.closing(Database(tmp_path / "all.sqlite")) as database:
        assert len(database.finished({"primitives": ["*"]})) == 1


def test_a_sweep_with_missing_cells_can_be_continued(tmp_path, merge):
    names = write_shards(tmp_path)
    code, output, _ = merge(*names[:2])
    assert code == 1
    assert "4 of 6 cells, not complete" in output
    with contextlib.closing(Database(tmp_path / "all.sqlite")) as database:
        sweep, _ = database.begin(VERSIONS, {"primitives": ["*"]}, "sources", fresh=False)
        assert len(database.rows(sweep)) == 4


def test_what_was_merged_can_be_merged_again(tmp_path, merge):
    names = write_shards(tmp_path)
    assert merge(*names[:2], into="two.sqlite")[0] == 1
    assert merge("two.sqlite", names[2])[0] == 0


def test_a_shard_that_is_given_twice_counts_once(tmp_path, merge):
    names = write_shards(tmp_path)
    assert merge(*names, names[0])[0] == 0


def test_versions_are_not_mixed_unless_asked(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    write(tmp_path / "2.sqlite", [cell("sin_1")], OTHER)
    code, _, errors = merge("1.sqlite", "2.sqlite")
    assert code == 2
    assert "different versions" in errors and "jax 1.0" in errors and "jax 2.0" in errors
    assert not (tmp_path / "all.sqlite").exists()
    code, *_ = merge("1.sqlite", "2.sqlite", options=["--mix-versions"])
    assert code == 0
    merged = sweeps(tmp_path / "all.sqlite")
    assert {sweep.versions.jax: harnesses for sweep, harnesses in merged} == {
        "1.0": ["sin_1"],
        "2.0": ["sin_1"],
    }


@pytest.mark.parametrize("field", ["jaxlib", "tensorflow", "numpy", "python"])
def test_any_version_counts(field, tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    write(tmp_path / "2.sqlite", [cell("sin_2")], dataclasses.replace(VERSIONS, **{field: "9"}))
    assert merge("1.sqlite", "2.sqlite")[0] == 2


def test_sweeps_of_other_sources_are_refused(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")], shard="1/2")
    write(tmp_path / "2.sqlite", [cell("sin_2")], shard="2/2", sources="other")
    code, _, errors = merge("1.sqlite", "2.sqlite", options=["--mix-versions"])
    assert code == 2
    assert "different sources" in errors


def test_files_that_disagree_are_refused(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")], shard="1/2")
    write(tmp_path / "2.sqlite", [cell("sin_1", Verdict.UNEXPECTED)], shard="2/2")
    code, _, errors = merge("1.sqlite", "2.sqlite")
    assert code == 2
    assert "disagree on sin_1" in errors


def test_other_selections_are_kept_side_by_side(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    write(tmp_path / "2.sqlite", [cell("sin_1")], selection={"primitives": ["sin"]})
    assert merge("1.sqlite", "2.sqlite")[0] == 0
    assert len(sweeps(tmp_path / "all.sqlite")) == 2


def test_nothing_is_written_over_or_left_behind(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    write(tmp_path / "all.sqlite", [cell("sin_2")])
    assert "exists" in merge("1.sqlite")[2]
    assert [harnesses for _, harnesses in sweeps(tmp_path / "all.sqlite")] == [["sin_2"]]
    (tmp_path / "text.sqlite").write_text("Dear diary")
    assert "no SQLite file" in merge("1.sqlite", "text.sqlite", into="new.sqlite")[2]
    assert "no results" in merge("missing.sqlite", into="new.sqlite")[2]
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"1.sqlite", "all.sqlite", "text.sqlite"}


def test_other_selections_of_the_same_cells_are_to_agree(tmp_path, merge):
    sort = {"primitives": ["sin"]}
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    write(tmp_path / "2.sqlite", [cell("sin_1", Verdict.UNEXPECTED)], selection=sort)
    write(tmp_path / "3.sqlite", [cell("sin_1")], selection=sort, sources="other")
    code, _, errors = merge("1.sqlite", "2.sqlite")
    assert code == 2 and "disagree on sin_1" in errors
    code, _, errors = merge("1.sqlite", "3.sqlite")
    assert code == 2 and "by different sources" in errors


def test_a_sweep_that_is_being_replaced_is_not_mixed_with_the_new_one(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1"), cell("sin_2")], sources="old")
    write(tmp_path / "1.sqlite", [cell("sin_1")], sources="new", cells=2, finish=False)
    code, output, _ = merge("1.sqlite")
    assert code == 1 and "1 of 2 cells, not complete" in output


def test_what_is_left_of_another_file_is_no_part_of_the_new_one(tmp_path, merge):
    write(tmp_path / "1.sqlite", [cell("sin_1")])
    (tmp_path / "all.sqlite-wal").write_bytes(b"theirs")
    code, _, errors = merge("1.sqlite")
    assert code == 2 and "all.sqlite-wal is left of another file" in errors
    assert (tmp_path / "all.sqlite-wal").read_bytes() == b"theirs"


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    """The disk is full when files may not grow, as far as SQLite can tell."""
    write(tmp_path / "1.sqlite", [cell(f"sin_{i}", message="x" * 200) for i in range(500)])
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, -1));"
        "from tools import merge_results; sys.exit(merge_results.main(sys.argv[1:]))"
    )
    argv = ["--into", tmp_path / "all.sqlite", tmp_path / "1.sqlite"]
    done = subprocess.run(
        [sys.executable, "-c", script, *argv], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["1.sqlite"]
