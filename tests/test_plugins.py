"""Rules of installed packages are found, and a broken package harms no other."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import tomllib

import pytest

from tests.helpers import ROOT

PLUGIN = ROOT / "tests/plugin"
CONVERT = """
    import sys
    import lowering
    assert "sinc_primitive" not in sys.modules

    import numpy as np
    from sinc_primitive import sinc

    assert "sinc_primitive.lowering_rules" not in sys.modules
    print(lowering.convert(sinc)(np.float32([0, 1])).numpy().round(3))
"""


def install(name: str, entry_points: str, site: pathlib.Path) -> None:
    """Writes what pip would write about a package."""
    info = site / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[lowering.rules]\n{entry_points}\n")


@pytest.fixture
def site(tmp_path) -> pathlib.Path:
    """A directory in which the package is installed."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())["project"]
    shutil.copytree(PLUGIN / "src", tmp_path, dirs_exist_ok=True)
    entry_points = project["entry-points"]["lowering.rules"].items()
    install(project["name"], "\n".join(f"{k} = {v}" for k, v in entry_points), tmp_path)
    return tmp_path


def run(site: pathlib.Path, program: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, with the packages of a directory."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (site, ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result


def test_a_rule_of_a_package_is_found_at_the_first_conversion(site):
    result = run(site, CONVERT)
    assert result.stdout.strip() == "[1.    0.841]"
    assert "RuntimeWarning" not in result.stderr


def test_a_broken_package_is_named_and_left_out(site):
    (site / "broken.py").write_text(
        "import lowering\n"
        "lowering.rule('left_out')(lambda ctx, x: x)\n"
        "raise OSError('a file is missing')\n"
    )
    (site / "again.py").write_text("import lowering\nlowering.rule('sin')(lambda ctx, x: x)\n")
    install("a-broken-package", "first = broken", site)
    install("a-second-sine", "first = again", site)
    program = CONVERT + "    assert 'left_out' not in lowering.registry.primitives()\n"
    result = run(site, program)
    assert result.stdout.strip() == "[1.    0.841]"
    assert "the rules that a-broken-package brings" in result.stderr
    assert "first = broken" in result.stderr
    assert "OSError: a file is missing" in result.stderr
    assert "the rules that a-second-sine brings" in result.stderr
    assert "'sin' has two rules" in result.stderr


def test_a_package_may_convert_while_it_is_loaded(site):
    (site / "converts.py").write_text(
        "import lowering, numpy\nlowering.convert(lambda x: x + 1)(numpy.float32(1))\n"
    )
    install("converting", "first = converts", site)
    assert "RuntimeWarning" not in run(site, CONVERT).stderr
