"""The harnesses as tests of absl and pytest, which are judged by the limitations."""

import io
import itertools
import os
import subprocess
import sys
import unittest

import numpy as np
import pytest
from absl import flags
from jax import lax

from harnesses import compare, primitives_test
from harnesses.cell import MODES, Cell
from harnesses.harness import Harness, all_harnesses
from harnesses.selection import SelectionError
from limitations import Limitation, Looser, all_limitations
from tests.helpers import ROOT


@pytest.fixture
def given(monkeypatch):
    """A function that parses flags of absl, as a runner does."""

    def given(*argv):
        flags.FLAGS(["test", *argv])

    yield given
    for name in primitives_test._FLAGS:
        flags.FLAGS[name].unparse()
    flags.FLAGS.unparse_flags()


def names(cells):
    """The names of the tests of cells, as a loader finds them."""
    return primitives_test.Loader().getTestCaseNames(primitives_test.case_of(cells))


def test_flags_select_cells_by_names_and_patterns(given):
    given("--primitive=cbrt,tan?", "--primitive=sin", "--dtype=float32", "--mode=graph,eager")
    cells = primitives_test.selected()
    harnesses = all_harnesses()
    assert {harnesses[c.harness].primitive for c in cells} == {"cbrt", "sin", "tanh"}
    assert {harnesses[c.harness].dtype_name for c in cells} == {"float32"}
    assert {(c.target, c.mode) for c in cells} == {
        (target, mode) for target in ("tf", "xla", "portable") for mode in ("eager", "graph")
    }
    assert len(names(cells)) == len(cells)


def test_flags_that_match_nothing(given):
    given("--primitive=cbrt", "--target=tf", "--mode=runtime")
    with pytest.raises(SelectionError, match="no harness has these modes"):
        primitives_test.selected()


def test_all_harnesses_have_tests_with_names_of_their_own(given):
    given("--mode=eager", "--target=tf")
    cells = primitives_test.selected()
    found = names(cells)
    assert len(found) == len(set(found)) == len(cells) == len(all_harnesses())
    assert all(name.isidentifier() for name in found)


def test_a_sample_has_each_primitive_once():
    primitives = [all_harnesses()[c.harness].primitive for c in primitives_test.sample()]
    assert sorted(primitives) == sorted({h.primitive for h in all_harnesses().values()})


def test_shards_have_every_test_once(given, monkeypatch):
    given("--primitive=cbrt")
    cells = primitives_test.selected()
    monkeypatch.setenv("TEST_TOTAL_SHARDS", "3")
    loader, all_names = primitives_test.Loader(), names(cells)
    by_absl = [loader.shardTestCaseNames(None, all_names, index) for index in range(3)]
    by_pytest = [primitives_test.selected(f"{number}/3") for number in (1, 2, 3)]
    assert sorted(itertools.chain(*by_absl)) == sorted(all_names)
    assert sorted(itertools.chain(*by_pytest), key=str) == sorted(cells, key=str)
    assert all(by_absl) and all(by_pytest)
    harnesses = [{c.harness for c in shard} for shard in by_pytest]
    assert sum(map(len, harnesses)) == len(set.union(*harnesses))
    # There may be more shards than harnesses.
    assert primitives_test.selected("99/99") == []


LIMITATIONS = (
    Limitation(
        "It is off.", looser=Looser.NAN_REACHES, modes={"eager"}, where=lambda c, _: c == "off"
    ),
    Limitation("It crashes.", error="crash", modes={"graph"}),
)


def test_limitations_gate_both_ways(monkeypatch):
    def off(expected, actual, args):
        return compare.Comparison(False, 2.0, "it is off")

    args = (np.float32([1, 2]),)
    cases = [Harness("neg", "fine", lax.neg, args), Harness("neg", "off", lax.neg, args, off)]
    harnesses = {harness.name: harness for harness in cases}
    monkeypatch.setattr(primitives_test, "all_harnesses", lambda: harnesses)
    monkeypatch.setitem(all_limitations(), "neg", LIMITATIONS)
    cells = [Cell(name, mode, "tf") for name in harnesses for mode in MODES]
    tests = unittest.defaultTestLoader.loadTestsFromTestCase(primitives_test.case_of(cells))
    result = unittest.TextTestRunner(stream=io.StringIO()).run(tests)
    assert result.testsRun == 6 and not result.errors
    failures = {test.id().rpartition(".test_")[2]: text for test, text in result.failures}
    assert failures.keys() == {
        "neg_fine_tf_graph_cpu",
        "neg_off_tf_graph_cpu",
        "neg_off_tf_compiled_cpu",
    }
    assert "equal, stale: It crashes." in failures["neg_fine_tf_graph_cpu"]
    assert "different, unexpected: it is off" in failures["neg_off_tf_compiled_cpu"]


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--primitive=cbtr", "error: no harness has the primitive 'cbtr'; did you mean cbrt?"),
        ("--device=tpu", "error: TensorFlow finds no device 'tpu' on this machine"),
    ],
)
def test_flags_that_make_no_sense_are_one_line(given, flag, message, capsys):
    given(flag)
    with pytest.raises(SystemExit) as error:
        primitives_test.main(["test"])
    assert error.value.code == 2
    assert capsys.readouterr().err.splitlines() == [message]


def run(*argv, **environment):
    """Runs the command line, with further variables in the environment."""
    return subprocess.run(
        [sys.executable, "-m", *argv],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_green_shard_by_absl():
    filters = ("--primitive=cbrt", "--mode=eager", "--target=tf")
    shard = {"TEST_TOTAL_SHARDS": "2", "TEST_SHARD_INDEX": "1"}
    done = run("harnesses.primitives_test", *filters, **shard)
    total = len([h for h in all_harnesses().values() if h.primitive == "cbrt"])
    assert done.returncode == 0, done.stderr
    assert f"Ran {total // 2} tests" in done.stderr


def test_harnesses_that_misbehave_by_absl():
    filters = ("--primitive=bad_fine,bad_refused,bad_wrong", "--mode=eager", "--target=tf")
    done = run("tests.harnesses.absl_misbehaving", *filters)
    assert done.returncode == 1
    assert "FAILED (failures=1)" in done.stderr
    assert "AssertionError: False is not true : different, unexpected: " in done.stderr


def test_pytest_runs_a_shard():
    """Of so many that each has one harness at most; those that come first take longest."""
    shard = {"TEST_TOTAL_SHARDS": "20000", "TEST_SHARD_INDEX": "7000"}
    done = run("pytest", "-q", "-n0", "harnesses/primitives_test.py", **shard)
    assert done.returncode == 0, done.stdout
    assert "9 passed" in done.stdout
