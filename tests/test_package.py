"""The package as a whole: what it imports, and what importing it changes."""

import pathlib
import re
import subprocess
import sys

import lowering
from tests.helpers import ROOT


def test_private_names_of_jax_are_used_in_one_module_alone():
    package = pathlib.Path(lowering.__file__).parent
    users = [
        path.name
        for path in package.rglob("*.py")
        if re.search(r"jax\._src|jax\.interpreters", path.read_text())
    ]
    assert users == ["jax_compat.py"]


def test_the_package_imports_nothing_else_of_the_project():
    package = pathlib.Path(lowering.__file__).parent
    for path in package.rglob("*.py"):
        imports = re.findall(r"^\s*(?:from|import) (\w+)", path.read_text(), re.MULTILINE)
        assert not {"harnesses", "limitations", "tools", "tests"} & set(imports), path


def test_importing_changes_no_setting_of_jax():
    code = "import jax, lowering; print(jax.config.jax_enable_x64, jax.default_backend())"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.split() == ["False", "cpu"]


def test_the_rules_are_imported_without_a_collection_of_garbage():
    """One looks through all objects of JAX and TensorFlow."""
    code = """
import gc, jax, tensorflow, lowering
full = []
gc.callbacks.append(lambda phase, info: full.append(info["generation"] == 2))
lowering.convert
gc.callbacks.clear()
print(any(full), gc.isenabled())
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.split() == ["False", "True"]


def test_garbage_that_is_not_collected_stays_so():
    code = "import gc, lowering; gc.disable(); lowering.convert; print(gc.isenabled())"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.split() == ["False"]
