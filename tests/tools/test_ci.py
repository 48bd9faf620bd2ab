"""What CI runs: what a change can reach, and a sample of the rest."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from tests.helpers import ROOT
from tools.ci import __main__ as ci
from tools.ci import reach, record
from tools.ci.observed import PROCESS
from tools.ci.reach import Reach
from tools.ci.selecting import SELECTED, Selected, by_directory

RULE, PASS, WRITER = (
    "lowering/rules/sort.py",
    "lowering/passes/hoisting.py",
    "lowering/export/onnx/__init__.py",
)
TESTS = {
    "tests/rules/test_a.py::test_sort": frozenset([RULE]),
    "tests/passes/test_b.py::test_pass": frozenset([PASS, "lowering/passes/pipeline.py"]),
    "tests/export/test_c.py::test_export": frozenset([WRITER, PASS]),
    "tests/tools/test_d.py::test_command": frozenset([PROCESS]),
    "tests/test_e.py::test_page": frozenset(["README.md"]),
}
PRIMITIVES = {"sort": frozenset([RULE, PASS]), "sin": frozenset([PASS, "lowering/rules/unary.py"])}
KNOWN = Reach(TESTS, PRIMITIVES)


@pytest.mark.parametrize(
    ("changed", "tests", "primitives"),
    [
        ([RULE], "a d", {"sort"}),
        ([PASS], "b c d", {"sin", "sort"}),
        # It is imported by the pass, and executed by nothing.
        (["lowering/passes/jaxprs.py"], "b c d", {"sin", "sort"}),
        (["tests/passes/test_b.py"], "b", set()),
        (["README.md"], "e", set()),
        (["LICENSE"], "", set()),
        (["setup.cfg"], "a b c d e", {"sin", "sort"}),
    ],
)
def test_what_a_change_reaches(changed, tests, primitives):
    reached = KNOWN.tests_of(frozenset(changed))
    assert {name.split("/test_")[1][0] for name in reached} == set(tests.split())
    assert KNOWN.primitives_of(frozenset(changed)) == primitives


def test_a_table_of_a_package_reaches_what_reads_it():
    known = Reach({"tests/test_a.py::test": frozenset(["lowering/targets/target.py"])}, {})
    assert known.tests_of(frozenset(["lowering/targets/onnx/ops.json"]))


def test_a_reach_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "reach.json"
    known = Reach(TESTS, PRIMITIVES, {"tests/test_e.py::test_page": 7.5})
    reach.write(known, path)
    assert reach.read(path) == known
    assert reach.read(tmp_path / "none.json") == Reach({}, {})


def test_what_has_changed_since_everything_passed(tmp_path):
    path = tmp_path / "passed.json"
    now = reach.hashes()
    assert reach.changed(path) == now.keys()
    path.write_text(json.dumps({**now, RULE: "another", "lowering/removed.py": "x"}))
    assert reach.changed(path) == {RULE, "lowering/removed.py"}


def test_a_docstring_reaches_the_tests_that_read_sources():
    text = '"""A module."""\n\n\ndef f(x):\n    """A function."""\n    return x  # As it is.\n'
    same = text.replace("A function", "The function").replace("As it is", "Unchanged")
    assert reach._code(text) == reach._code(same)
    assert reach._code(text) != reach._code(text.replace("A module", "The module"))
    assert reach._code(text) != reach._code(text.replace("return x", "return f"))
    read = {"tests/tools/test_d.py::test_command"}
    assert KNOWN.tests_of(frozenset([f"{RULE}#text"])) == read
    assert KNOWN.primitives_of(frozenset([f"{RULE}#text"])) == frozenset()
    both = frozenset([RULE, f"{RULE}#text"])
    assert KNOWN.tests_of(both) == KNOWN.tests_of(frozenset([RULE])) | read


def test_the_seed_is_that_of_the_sources(monkeypatch):
    sources = reach.hashes()
    assert ".ci/passed.json" not in sources
    seed = reach.seed()
    assert reach.seed() == seed
    monkeypatch.setattr(reach, "hashes", lambda: {**sources, RULE: "another"})
    assert reach.seed() != seed


def test_tests_that_nothing_reaches_take_turns(tmp_path):
    tests = [f"tests/test_x.py::test[{i}]" for i in range(500)]
    drawn = {}
    for seed in "abcdefghijklmnopqrstuvwxyz":
        selected = Selected(seed, {"tests/test_x.py::test"}, (), {})
        selected.write(tmp_path / seed)
        drawn[seed] = Selected.read(tmp_path / seed).of(tests)
        assert drawn[seed] == selected.of(tests)
        assert 60 < len(drawn[seed]) < 140
    assert len(set().union(*drawn.values())) > 480
    name = {"tests/test_x.py::test"}
    assert Selected("a", name, name, {}).of(tests) == set(tests)
    # What is not known has to run.
    assert Selected("a", {"tests/test_y.py::test"}, (), {}).of(tests) == set(tests)


def test_where_a_change_reaches_most_tests_many_cases_take_turns():
    name = {"tests/test_x.py::test"}
    tests = [f"tests/test_x.py::test[{i}]" for i in range(100)]
    drawn = {seed: Selected(seed, name, name, {}, sampled=name).of(tests) for seed in "abcdefghij"}
    assert all(len(of_seed) in (33, 34) for of_seed in drawn.values())
    assert len(set().union(*drawn.values())) > 90
    assert Selected("a", name, name, {}, sampled=name).of(tests[:6]) == set(tests[:6])
    assert Selected("a", (), name, {}, sampled=name).of(tests) >= drawn["a"]


def test_where_a_change_reaches_most_tests_those_that_take_long_take_turns():
    names = {f"tests/test_x.py::test_{i}" for i in range(200)}
    seconds = {name: 16.0 if name.endswith("0") else 1.0 for name in names}
    long = {name for name in names if seconds[name] > 1}
    drawn = {
        seed: Selected(seed, names, names, seconds, sampled=names).of(names)
        for seed in "abcdefghijklmnop"
    }
    assert all(of_seed >= names - long for of_seed in drawn.values())
    assert all(3 < len(of_seed & long) < 17 for of_seed in drawn.values())
    assert set().union(*drawn.values()) == names
    # A test that has changed itself is run.
    assert Selected("a", names, names, seconds, sampled=names - long).of(names) == names


def test_sweeps_are_smaller_where_tests_have_taken_long():
    def seconds(minutes, **kwargs):
        start = time.time() - 60 * minutes
        return [
            float(ci.Plan(frozenset([RULE]), KNOWN, seed="0a", start=start, **kwargs).sweep(x)[1])
            for x in (False, True)
        ]

    usual = seconds(0, full=False)
    assert seconds(40, full=False) == usual
    late = seconds(54, full=False)
    assert all(0 < less < more for less, more in zip(late, usual))
    assert all(x > 0 for x in seconds(90, full=False))
    assert seconds(90, full=True) == seconds(0, full=True)


def test_what_may_take_long_comes_first():
    known = {"tests/test_x.py::test", "tests/test_x.py::slow"}
    selected = Selected("a", known, known, {"tests/test_x.py::slow": 9.0})
    tests = ["tests/test_x.py::test", "tests/test_x.py::slow[1]", "tests/test_new.py::test"]
    assert sorted(tests, key=selected.first) == tests[::-1]


def test_a_plan_of_a_change_of_one_rule(tmp_path):
    plan = ci.Plan(frozenset([RULE]), KNOWN, full=False, seed="0a")
    assert plan.whole == ["sort"]
    assert plan.sweep(is_newer=True) == ["--seconds", "0.8", "--turn", "0a-newer", "--whole=sort"]
    plan.selected().write(tmp_path / "selected.json")
    assert Selected.read(tmp_path / "selected.json").reached == KNOWN.tests_of(plan.changed)
    assert "2 of the 5 test functions" in str(plan)
    assert "1 of 2 primitives" in str(plan)


def test_a_plan_of_a_change_that_reaches_most(monkeypatch):
    monkeypatch.setattr(ci, "_MOST_WHOLE", 1)
    monkeypatch.setattr(reach, "_FEW", 0)
    plan = ci.Plan(frozenset([PASS, RULE]), KNOWN, full=False, seed="0a")
    # The rule is the primitive's own.
    seconds = f"{ci._REACHED:g}"
    assert plan.sweep(is_newer=False) == ["--seconds", seconds, "--turn", "0a", "--whole=sort"]
    # Four of the five tests are reached.
    assert plan.selected().sampled == plan.known.tests_of(plan.changed)
    changed = plan.changed | {"tests/passes/test_b.py"}
    of_test = ci.Plan(changed, KNOWN, full=False, seed="0a").selected()
    assert of_test.reached - of_test.sampled == {"tests/passes/test_b.py::test_pass"}


def test_tests_run_in_full_if_few_execute_a_changed_source(monkeypatch):
    monkeypatch.setattr(reach, "_FEW", 1)
    changed = frozenset([PASS, RULE])
    assert KNOWN.few_tests_of(changed) == {"tests/rules/test_a.py::test_sort"}
    selected = ci.Plan(changed, KNOWN, full=False, seed="0a").selected()
    assert selected.reached - selected.sampled == {"tests/rules/test_a.py::test_sort"}


def test_a_full_plan_runs_all_tests():
    plan = ci.Plan(frozenset(), KNOWN, full=True, seed="0a")
    assert plan.selected().of([*TESTS, ci.SWEEP]) == set(TESTS)


def test_where_the_time_went():
    steps = ci.Steps({"environment": 30.0})
    steps.run("fine", sys.executable, "-c", "")
    steps.run("bad", sys.executable, "-c", "import sys; sys.exit(3)")
    assert steps.failed == ["bad"]
    assert [line.split()[-1] for line in steps.report().splitlines()[1:]] == [
        "environment",
        "fine",
        "bad",
    ]
    durations = [("tests/export/test_a.py::t", 2.0), ("tests/test_b.py::t", 9.0)]
    durations += [("tests/export/test_c.py::t", 1.5), ("tests/export/test_c.py::t", 1.0)]
    assert by_directory(durations) == [
        "     9.0 s      1 tests  tests/test_b.py",
        "     4.5 s      2 tests  tests/export",
    ]


def test_processes_of_pytest_run_what_is_selected(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from tools.ci import selecting\n"
        "def pytest_collection_modifyitems(config, items): selecting.select(config, items)\n"
        "def pytest_terminal_summary(terminalreporter): selecting.summarize(terminalreporter)\n"
    )
    (tmp_path / "test_x.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('i', range(40))\ndef test_many(i): pass\n"
        "def test_left_out(): assert False\n"
        "def test_long(): pass\n"
    )
    selected = Selected(
        seed="0",
        known={"test_x.py::test_many"},
        reached=(),
        seconds={"test_x.py::test_long": 9.0},
        left_out={"test_x.py::test_left_out"},
    )
    selected.write(tmp_path / "selected.json")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider"]
    for processes in ("0", "2"):
        done = subprocess.run(
            [*command, "--numprocesses", processes],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), SELECTED: "selected.json"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        ran = {*re.findall(r"test_x.py::\S+", done.stdout)}
        assert "test_x.py::test_long" in ran
        assert 1 < len(ran) < 20
        assert "time by directory" in done.stdout


def test_a_recording_is_read(tmp_path):
    lines = [
        {"test": "tests/test_x.py::test[1]", "seen": [RULE], "reports": [["call", "passed", 6.0]]},
        {"test": "tests/test_x.py::test[2]", "seen": [PASS], "reports": [["call", "passed", 1.0]]},
    ]
    (tmp_path / "tests-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seen, seconds = record.read(tmp_path)
    assert seen == {"tests/test_x.py::test": {RULE, PASS}}
    assert seconds == {"tests/test_x.py::test": 6.0}
