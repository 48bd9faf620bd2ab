"""Versions of JAX and TensorFlow that are not supported are told of at import."""

import configparser
import json
import os
import re
import subprocess
import sys

import pytest

import lowering
from lowering.versions import JAX, TENSORFLOW
from tests.helpers import ROOT

SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def test_pip_is_asked_for_the_same_versions():
    extras = SETUP["options.extras_require"]
    cpu, any_device = extras["cpu"].strip(), extras["tensorflow"].strip()
    assert f"jax >= {JAX.oldest}" in SETUP["options"]["install_requires"].splitlines()
    bounds = f">= {TENSORFLOW.oldest}"
    assert (cpu, any_device) == (f"tensorflow-cpu {bounds}", f"tensorflow {bounds}")
    assert JAX.command == f'pip install "jax >= {JAX.oldest}"'
    assert re.findall('pip install "(.*?)"', TENSORFLOW.command) == [cpu, any_device]
    assert (
        f"JAX {JAX.oldest} or later, and TensorFlow {TENSORFLOW.oldest} or later."
        in (ROOT / "README.md").read_text()
    )


@pytest.mark.parametrize("package", [JAX, TENSORFLOW], ids=lambda package: package.module)
def test_the_newest_version_has_been_swept(package):
    recorded = json.loads((ROOT / "g3doc" / "recorded.json").read_text()).values()
    swept = [of_sweep["versions"][package.module] for of_sweep in recorded]
    assert any(version.startswith(f"{package.newest}.") for version in swept)
    assert not any(package.is_too_old(v) or package.is_untested(v) for v in swept)


@pytest.mark.parametrize(
    "version, too_old, untested",
    [
        ("0.4.38", True, False),
        ("0.10.1", True, False),
        ("0.10.1.dev20260101", True, False),
        ("0.10.2rc1", False, False),
        ("0.10.2", False, False),
        ("0.11.0", False, False),
        ("0.12.9.1", False, False),
        ("0.12.0.dev20260101+abc", False, False),
        ("0.13.0-rc0", False, True),
        ("1.0", False, True),
    ],
)
def test_versions_are_compared_as_numbers(version, too_old, untested):
    package = JAX._replace(oldest="0.10.2", newest="0.12")
    assert (package.is_too_old(version), package.is_untested(version)) == (too_old, untested)


@pytest.mark.parametrize("path", sorted((ROOT / "constraints").glob("*.txt")), ids=str)
def test_constraints_are_versions_that_are_supported(path):
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[\w.+]+", line) for line in lines)
    versions = dict(line.split("==") for line in lines)
    for package in (JAX, TENSORFLOW):
        version = versions[package.distributions[0]]
        assert not package.is_too_old(version) and not package.is_untested(version)


# What fits no other versions of what is tested.
ALONE = {"jax2onnx", "transformers"}


@pytest.mark.parametrize("path", sorted((ROOT / "constraints").glob("*.txt")), ids=str)
def test_constraints_are_of_all_extras(path):
    named = set(re.findall(r"^([a-z0-9-]+)==", path.read_text(), re.MULTILINE))
    extras = SETUP["options.extras_require"].values()
    texts = [line.strip() for extra in extras for line in extra.splitlines() if line.strip()]
    needed = {re.split(r"[\s<>=\[]", text)[0].lower() for text in texts}
    assert needed - {"lowering"} - ALONE <= named


def test_the_citation_is_of_this_version():
    citation = (ROOT / "CITATION.cff").read_text()
    version = lowering.__version__
    assert f"\nversion: {version}\n" in citation
    # Before a release there is no date, and none is made up.
    changelog = (ROOT / "CHANGELOG.md").read_text()
    released = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changelog, re.MULTILINE)
    dates = re.findall(r"^date-released: (\S+)$", citation, re.MULTILINE)
    assert dates == ([released[1]] if released else [])
    assert bool(released) == ("\nrepository-code: https://" in citation)


FAILS = "import json.missing"


@pytest.mark.parametrize(
    "installed, message",
    [
        ({JAX: ("0.4.30", "")}, "lowering needs JAX 0.10.2 or later, and JAX 0.4.30 is installed."),
        (
            {JAX: ("0.4.30", FAILS)},
            "lowering needs JAX 0.10.2 or later, and JAX 0.4.30 is installed.",
        ),
        (
            {JAX: (JAX.oldest, ""), TENSORFLOW: ("2.15.1", "")},
            "lowering needs TensorFlow 2.21 or later, and TensorFlow 2.15.1 is installed.",
        ),
        ({}, "lowering needs JAX 0.10.2 or later, and none is installed."),
        (
            {JAX: (JAX.oldest, "")},
            "lowering needs TensorFlow 2.21 or later, and none is installed.",
        ),
    ],
    ids=["old JAX", "broken old JAX", "old TensorFlow", "no JAX", "no TensorFlow"],
)
def test_what_is_not_supported_is_an_error(installed, message, tmp_path):
    """In a process that finds nothing but a module with a version."""
    result = _import("from lowering import jax2tf", installed, tmp_path, "-S")
    *_, last = result.stderr.splitlines()
    package = JAX if "JAX" in message else TENSORFLOW
    assert last == f"ImportError: {message} Run {package.command}"
    assert result.stderr.count("Traceback") == 1


def test_a_supported_version_that_is_broken_raises_its_own_error(tmp_path):
    installed = {JAX: (JAX.newest, FAILS), TENSORFLOW: (TENSORFLOW.newest, "")}
    result = _import("from lowering import convert", installed, tmp_path, "-S")
    assert "No module named 'json.missing'" in result.stderr.splitlines()[-1]


def test_one_warning_says_what_has_not_been_tested():
    code = """
import jax, tensorflow as tf
jax.__version__, tf.__version__ = "97.0", "98.1"
import lowering
from lowering import jax2tf
print(lowering.convert(abs)(-2.0).numpy())
"""
    result = _import(code, {}, ROOT)
    (warning,) = [line for line in result.stderr.splitlines() if "RuntimeWarning" in line]
    assert warning.startswith("<string>:4: ")
    assert f"JAX 97.0 (tested up to {JAX.newest}) and TensorFlow 98.1" in warning
    assert result.stdout == "2.0\n"


def _import(code, installed, directory, *options):
    """Runs code with modules of the given versions, and further code, in a directory."""
    for package, (version, module) in installed.items():
        (directory / f"{package.module}.py").write_text(f"__version__ = {version!r}\n{module}\n")
        name = package.distributions[0]
        metadata = directory / f"{name.replace('-', '_')}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    path = os.pathsep.join([str(directory), str(ROOT)])
    return subprocess.run(
        [sys.executable, *options, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("word", ["--help", "--version", "inspect --help"])
def test_the_command_line_has_its_help_without_jax_and_tensorflow(word, tmp_path):
    code = f"from lowering.__main__ import main\nmain({word.split()})"
    result = _import(code, {}, tmp_path, "-S")
    assert "lowering" in result.stdout and not result.stderr


def test_a_command_without_jax_says_what_is_missing(tmp_path):
    code = "from lowering.__main__ import main\nprint(main(['inspect', 'model.tflite']))"
    result = _import(code, {JAX: (JAX.oldest, "")}, tmp_path, "-S")
    needed = "lowering needs TensorFlow 2.21 or later, and none is installed."
    assert result.stderr == f"error: {needed} Run {TENSORFLOW.command}\n"
    assert result.stdout == "1\n"
