"""Skeletons of a primitive, and the steps from them to a green sweep."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from lowering import jax_compat
from tests.helpers import ROOT, counts
from tools import new_primitive

ROOMS = ("lowering/rules", "harnesses/primitives", "limitations/primitives")


@pytest.fixture
def unknown_to_lowering(monkeypatch):
    """Adds primitives without a rule to those of JAX."""
    names = jax_compat.cpu_primitives() | {"brand-new", "with"}
    monkeypatch.setattr(jax_compat, "cpu_primitives", lambda: names)


@pytest.fixture
def root(tmp_path) -> pathlib.Path:
    for room in ROOMS:
        (tmp_path / room).mkdir(parents=True)
    return tmp_path


def test_files_are_named_as_modules(unknown_to_lowering, root):
    paths = new_primitive.write_skeletons("brand-new", root)
    assert paths == [root / room / "brand_new.py" for room in ROOMS]
    for path in paths:
        text = path.read_text()
        assert '"brand-new"' in text
        compile(text, path, "exec")


def test_a_keyword_is_no_function_name(unknown_to_lowering, root):
    for path in new_primitive.write_skeletons("with", root):
        assert path.name == "with.py"
        compile(path.read_text(), path, "exec")


def test_skeletons_are_formatted(unknown_to_lowering, root):
    shutil.copy(ROOT / "ruff.toml", root)
    new_primitive.write_skeletons("brand-new", root)
    for command in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, "."], cwd=root, check=True)


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_overwritten(unknown_to_lowering, root, room):
    existing = root / room / "brand_new.py"
    existing.write_text("# Mine.\n")
    with pytest.raises(ValueError, match=f"{room}/brand_new.py exists already"):
        new_primitive.write_skeletons("brand-new", root)
    assert existing.read_text() == "# Mine.\n"
    assert len(list(root.rglob("*.py"))) == 1


def test_a_primitive_that_jax_lacks(root):
    with pytest.raises(ValueError, match=r"no primitive 'sinn' for the CPU; did you mean .*sin"):
        new_primitive.write_skeletons("sinn", root)


def test_a_primitive_that_is_lowered_already(root):
    with pytest.raises(ValueError, match="sin has a rule already"):
        new_primitive.write_skeletons("sin", root)


def test_exit_codes(capsys):
    assert new_primitive.main(["sinn"]) == 2
    assert "error: JAX" in capsys.readouterr().err


def test_from_nothing_to_a_green_sweep(tmp_path):
    """Removes a primitive from a copy of the checkout and adds it again."""
    for room in ("lowering", "harnesses", "limitations", "results", "tools"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignored)
    files = [pathlib.Path(room, "reduce_precision.py") for room in ROOMS[:2]]
    for file in files:
        (tmp_path / file).unlink()

    def run(module, *args):
        command = [sys.executable, "-m", module, *args]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return result.returncode, result.stdout

    filters = ("--primitive=reduce_precision", "--dtype=float32", "--mode=graph", "--target=tf")
    assert run("tools.new_primitive", "reduce_precision")[0] == 0
    returncode, output = run("tools.sweep", *filters)
    assert returncode == 1
    assert "a JAX function of x that binds reduce_precision" in output
    assert output.splitlines()[-1] == counts(1, bad=1)

    for file in files:
        shutil.copy(ROOT / file, tmp_path / file)
    returncode, output = run("tools.sweep", *filters)
    assert returncode == 0, output
    assert output.splitlines()[-1].endswith(
        "equal, 0 expected failures, 0 unexpected failures, 0 unexpected passes"
    )
