"""Quirks still happen, and what works around them names them."""

import dataclasses
import functools
import importlib
import inspect
import subprocess
import sys

import numpy as np
import pytest

from lowering.targets import ONNX, PORTABLE, TFLITE, folders, quirk
from lowering.targets.tflite import quirks as tflite
from tests.helpers import ROOT, code_blocks
from tests.targets import reproducing

TARGETS = tuple(sorted({path.parent.name for path in folders.FOLDER.glob("*/*quirks.py")}))


@pytest.mark.parametrize("target", TARGETS)
def test_quirks_still_happen(target):
    """One that does not is stale: its record and what works around it can go."""
    found = reproducing.outcomes(target)
    assert found.keys() == quirk.known(target).keys()
    assert {name: outcome for name, outcome in found.items() if outcome is not True} == {}


def test_all_targets_with_quirks_are_tested():
    assert {"grappler", "tflite", "onnx", "tfjs"} <= set(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_records(target):
    for name, known in quirk.known(target).items():
        assert (known.name, known.target) == (name, target)
        assert known.happens.endswith((".", ".\n    ")) and known.link.startswith(
            "https://github.com/"
        )
        assert known.versions and known.around
        assert (known.backend is None) == (target != "tfjs")


@pytest.mark.parametrize("target", TARGETS)
def test_what_works_around_a_quirk_names_it(target):
    for name, known in quirk.known(target).items():
        for around in known.around:
            module, found = _resolved(around)
            assert found is not None, around
            assert f"quirks.{name}" in inspect.getsource(module), f"{around} does not name {name}"


def _resolved(path):
    """The module of "module.name" and what has the name there."""
    parts = path.split(".")
    for count in range(len(parts) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        return module, functools.reduce(getattr, parts[count:], module)
    raise AssertionError(path)


def test_quirks_are_imported_without_a_runtime():
    """And without TensorFlow, as are targets."""
    names = ", ".join(f"lowering.targets.{target}.quirks" for target in TARGETS)
    code = f"import {names}, sys; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"ai_edge_litert", "onnx", "onnx_ir", "onnxruntime"} & set(modules)


def _of_page():
    """The quirk of the page on the architecture."""
    code = next(c for c in code_blocks(ROOT / "g3doc/architecture.md") if "_quirk(" in c)
    scope = {
        "_quirk": quirk.quirks_of("lite", {"lite": "1.0"}),
        "_run": lambda fun, x: fun(x).numpy(),
        "np": np,
    }
    exec(code, scope)
    return scope["sorts_of_nan"]


def test_the_quirk_of_the_page():
    found = _of_page()
    assert (found.name, found.target, found.versions) == ("sorts_of_nan", "lite", {"lite": "1.0"})
    assert found.happens == "A sort loses NaN." and found.around == (
        "lowering.rules.sort.sort_lite",
    )
    assert found.reproduce() is False


def test_a_target_has_its_quirks_and_those_that_it_inherits():
    assert TFLITE.has(tflite.swapped_operands) and not ONNX.has(tflite.swapped_operands)
    heir = dataclasses.replace(TFLITE, name="heir", parent=TFLITE)
    assert heir.has(tflite.swapped_operands) and not PORTABLE.has(tflite.swapped_operands)


def test_outcomes_in_javascript():
    make = quirk.quirks_of("tfjs", {})
    bodies = {"happens": "return true;", "is_stale": "return false;", "fails": "throw 'no';"}
    quirks = [
        dataclasses.replace(make("", "", backend="cpu")(lambda body=body: body), name=name)
        for name, body in bodies.items()
    ]
    assert reproducing._in_node(quirks) == {"happens": True, "is_stale": False, "fails": "no"}


def test_outcomes_in_processes():
    """One that ends the process is followed by the others, and is an error unless it is to."""
    names = ("extrema_of_monotonic_functions", "explicit_padding_of_depthwise_convolutions")
    known = quirk.known("grappler")
    quirks = {n: dataclasses.replace(known[n], ends_process=False) for n in reversed(names)}
    found = reproducing._in_processes("grappler", quirks)
    assert found[names[0]] is True and found[names[1]].startswith("the process ends")
