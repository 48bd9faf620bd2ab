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
