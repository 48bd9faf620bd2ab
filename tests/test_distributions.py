"""Wheel and sdist: what is in them, and that the examples of the README run with the wheel alone.

They are built of a copy of the sources, in which lies what builds and runs leave behind.
"""

import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from typing import Any

import pytest

import lowering
from tests.helpers import ROOT, run_as_program

NAME = f"lowering-{lowering.__version__}"
LEFTOVERS = {
    "build/lib/lowering/removed.py": "",
    "lowering/__pycache__/convert.cpython-311.pyc": "",
    "lowering/export/tfjs/node/node_modules/package/index.js": "",
    "lowering.egg-info/SOURCES.txt": "tests/test_convert.py\n",
}


@pytest.fixture(scope="module")
def sources() -> Sequence[str]:
    """The files of the checkout, but for those that git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = _run(command, cwd=ROOT).split("\0")
    return [name for name in listed if name and (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def distributions(sources, tmp_path_factory) -> pathlib.Path:
    """A directory with the sdist, and the wheel that is built of it."""
    copy = tmp_path_factory.mktemp("sources")
    for name in sources:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, copy / name)
    for name, text in LEFTOVERS.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(text)
    built = tmp_path_factory.mktemp("distributions")
    _run([sys.executable, "-m", "build", "--outdir", built], cwd=copy)
    return built


def test_the_distributions_hold_the_package_and_nothing_else(sources, distributions):
    package = {name for name in sources if name.startswith("lowering/")}
    assert "lowering/py.typed" in package

    with zipfile.ZipFile(distributions / f"{NAME}-py3-none-any.whl") as wheel:
        names = {info.filename for info in wheel.infolist() if not info.is_dir()}
    metadata = {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "licenses/LICENSE",
        "top_level.txt",
    }
    assert names == package | {f"{NAME}.dist-info/{name}" for name in metadata}

    with tarfile.open(distributions / f"{NAME}.tar.gz") as sdist:
        names = {member.name.removeprefix(f"{NAME}/") for member in sdist if member.isfile()}
    beside = {"CHANGELOG.md", "LICENSE", "MANIFEST.in", "README.md", "pyproject.toml"}
    beside |= {"setup.cfg", "setup.py"}
    made = {name for name in names if name == "PKG-INFO" or name.startswith("lowering.egg-info/")}
    assert names - made == package | beside


@pytest.mark.parametrize("origin", [None, "git@github.com:some/where.git"])
def test_links_are_absolute_where_the_package_is_published(tmp_path, origin):
    """By a variable, or the address that the clone has come from."""
    for name in ("README.md", "pyproject.toml", "setup.cfg", "setup.py"):
        shutil.copyfile(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "lowering", tmp_path / "lowering")
    url = "https://example.org/somewhere" if origin is None else "https://github.com/some/where"
    environment = {k: v for k, v in os.environ.items() if k != "REPOSITORY_URL"}
    if origin is None:
        environment["REPOSITORY_URL"] = url
    else:
        _run(["git", "init", "--quiet", str(tmp_path)])
        _run(["git", "-C", str(tmp_path), "remote", "add", "origin", origin])
    _run([sys.executable, "setup.py", "--quiet", "egg_info"], cwd=tmp_path, env=environment)
    described = (tmp_path / "lowering.egg-info" / "PKG-INFO").read_text()
    assert f"Project-URL: Source, {url}" in described
    links = re.findall(r"\]\(([^)\s]+)\)", described)
    assert links and all(link.startswith(("https://", "#")) for link in links)


def test_the_distributions_can_be_published(distributions):
    _run([sys.executable, "-m", "twine", "check", "--strict", *sorted(distributions.iterdir())])


def test_examples_of_the_readme_run_with_the_wheel_alone(distributions, tmp_path):
    """In an environment of its own, which finds the packages that the wheel needs in this one."""
    python = _environment_with(distributions / f"{NAME}-py3-none-any.whl", tmp_path / "environment")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    find = "import importlib.util; print(importlib.util.find_spec('lowering').origin)"
    origin = pathlib.Path(_run([python, "-I", "-c", find], cwd=elsewhere).strip())
    assert origin.is_relative_to(tmp_path / "environment")

    run_as_program(ROOT / "README.md", elsewhere, python)
    assert {path.name for path in elsewhere.iterdir()} >= {
        *("model.onnx", "model.tflite"),
        *("saved_model", "web_model"),
    }


def _environment_with(wheel: pathlib.Path, directory: pathlib.Path) -> pathlib.Path:
    """Installs a wheel with its extras in a new virtual environment; returns its interpreter.

    Nothing is downloaded: the requirements of the wheel have to be met by packages of this
    environment. A path file makes them visible, but not what is editable among them.
    """
    venv.create(directory, with_pip=False, symlinks=True)
    (python,) = directory.glob("bin/python")
    (packages,) = directory.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text("\n".join(site.getsitepackages()))
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    _run([*pip, "install", "--quiet", "--no-index", f"{wheel}[onnx,tfjs,tflite]"])
    return python


def _run(command: Sequence[Any], **options: Any) -> str:
    """Runs a command; returns what it prints."""
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-4000:]
    return result.stdout
