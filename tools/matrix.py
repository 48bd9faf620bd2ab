"""Sweeps with several versions of JAX and TensorFlow, into one database.

    python -m tools.matrix --jax 0.10.2 --jax 0.12.0.1 --tensorflow 2.21.0 --primitive sort
    python -m tools.matrix --newest --per-harness all

Each combination has a virtual environment, made when it is first needed with the newest Python that
both are built for; pip has to find its packages. All other arguments are those of tools/sweep.py,
which runs in each environment in turn. --newest takes the newest releases that fit together.

The exit code is the worst of the sweeps; 2 if a combination cannot be installed. The others are
swept nevertheless.
"""

import argparse
import glob
import hashlib
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple

from packaging.version import Version

from tools.terminal import failed
from tools.terminal import run as run_command

ROOT = pathlib.Path(__file__).parents[1]
# Where environments are made; git ignores it.
ENVIRONMENTS = ROOT / ".matrix"
DATABASE = "matrix.sqlite"

# On Linux the other build of TensorFlow brings libraries for GPUs, several gigabytes of them.
_TENSORFLOW = "tensorflow-cpu" if sys.platform == "linux" else "tensorflow"
# The extras that sweeps need; that of TensorFlow would restrict its version.
_EXTRAS = "onnx,tfjs,tflite,dev"
_MINOR = ("3.14", "3.13", "3.12", "3.11")

Run = Callable[[Sequence[str]], subprocess.CompletedProcess[str]]


class Combination(NamedTuple):
    """Versions to sweep with."""

    jax: str
    tensorflow: str

    def __str__(self) -> str:
        return f"JAX {self.jax} with TensorFlow {self.tensorflow}"

    @property
    def requirements(self) -> list[str]:
        """The requirements that pip installs."""
        return [f"jax=={self.jax}", f"jaxlib=={self.jax}", f"{_TENSORFLOW}=={self.tensorflow}"]


class MatrixError(RuntimeError):
    """A combination cannot be swept, for the reason that the message gives."""


def quietly(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command and keeps what it prints."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def visibly(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Runs a command that prints to this terminal; an interrupt ends it, and not this process."""
    with subprocess.Popen(command, cwd=ROOT, text=True) as process:
        usual = {
            number: signal.signal(number, lambda n, _: process.send_signal(n))
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            code = process.wait()
        finally:
            for number, handler in usual.items():
                signal.signal(number, handler)
    return subprocess.CompletedProcess(command, code)


def pythons() -> list[str]:
    """The Pythons of this machine that the project supports, the newest first."""
    found = []
    for minor in _MINOR:
        installed = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{minor}.*/bin/python3"))
        here = sys.executable if minor == "{}.{}".format(*sys.version_info) else None
        found += [p for p in (shutil.which(f"python{minor}"), *installed, here) if p]
    return [python for python in found if _minor(python)]


def _minor(python: str) -> bool:
    """Whether a Python runs; launchers of versions that are not installed do not."""
    return quietly([python, "-c", ""]).returncode == 0


def python_for(combination: Combination, candidates: Sequence[str], run: Run = quietly) -> str:
    """The first of some Pythons that a combination can be installed for.

    Raises:
      MatrixError: if there is none.
    """
    errors = []
    for python in candidates:
        options = ("--dry-run", "--ignore-installed", "--no-deps", "--only-binary=:all:", "--quiet")
        result = run([*_pip(python), "install", *options, *combination.requirements])
        if result.returncode == 0:
            return python
        errors.append(f"{python}: {_last(result.stderr)}")
    tried = "\n".join(errors) or f"there is no Python {' or '.join(_MINOR)}"
    raise MatrixError(f"no Python has both of {combination}\n{tried}")


def newest(candidates: Sequence[str], run: Run = quietly) -> Combination:
    """The newest JAX for which there is a TensorFlow for the same Python, and the newest of these.

    Raises:
      MatrixError: if no Python has both.
    """
    found = []
    for python in candidates:
        versions = []
        for package in ("jax", _TENSORFLOW):
            result = run([*_pip(python), "index", "versions", package])
            named = re.match(rf"{package} \((\S+)\)", result.stdout)
            if result.returncode == 0 and named:
                versions.append(named[1])
        if len(versions) == 2:
            found.append(Combination(*versions))
    if not found:
        raise MatrixError("pip finds no JAX and TensorFlow for the Pythons of this machine")
    return max(found, key=lambda c: (Version(c.jax), Version(c.tensorflow)))


def environment(
    combination: Combination, directory: pathlib.Path = ENVIRONMENTS, run: Run = quietly
) -> str:
    """The Python of the environment of a combination, which is made if it is not there.

    It is made anew when the dependencies of the project have changed.

    Raises:
      MatrixError: if it cannot be made.
    """
    home = directory / f"jax-{combination.jax}-tensorflow-{combination.tensorflow}"
    python, ready = str(home / "bin" / "python"), home / ".ready"
    dependencies = hashlib.sha256((ROOT / "setup.cfg").read_bytes()).hexdigest()
    if ready.exists() and ready.read_text() == dependencies:
        return python
    base = python_for(combination, pythons(), run)
    steps = (
        [base, "-m", "venv", "--clear", str(home)],
        [*_pip(python), "install", "--editable", f".[{_EXTRAS}]", *combination.requirements],
        [python, "-m", "lowering.export.tfjs.install"],
    )
    for step in steps:
        result = run(step)
        if result.returncode != 0:
            raise MatrixError(f"{' '.join(step)}\n{_last(result.stderr)}")
    home.mkdir(parents=True, exist_ok=True)
    ready.write_text(dependencies)
    return python


def _pip(python: str) -> list[str]:
    return [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]


def _last(text: str) -> str:
    """The last lines that a command has printed."""
    return "\n".join(text.strip().splitlines()[-3:])


def sweep_all(
    combinations: Sequence[Combination],
    arguments: Sequence[str],
    make: Callable[[Combination], str] = environment,
    run: Run = visibly,
) -> int:
    """Sweeps with each combination; returns the exit code.

    Args:
      combinations: the versions.
      arguments: those of the sweeps.
      make: returns the Python of a combination; raises a `MatrixError` if there can be none.
      run: runs a sweep.
    """
    codes: dict[Combination, int] = {}
    for combination in combinations:
        print(f"== {combination}", flush=True)
        try:
            python = make(combination)
        except MatrixError as error:
            codes[combination] = failed(error)
            continue
        code = run([python, "-m", "tools.sweep", *arguments]).returncode
        # As shells have it for a command that a signal has ended.
        codes[combination] = code if code >= 0 else 128 - code
        if codes[combination] == 130:
            break
    results = {0: "green", 1: "red", 2: "not swept", 130: "interrupted"}
    for combination in combinations:
        code = codes.get(combination, 130)
        print(f"{combination}: {results.get(code, f'exit code {code}')}")
    return max(codes.values(), default=0)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.matrix",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for name in ("jax", "tensorflow"):
        parser.add_argument(
            f"--{name}", action="append", default=[], metavar="VERSION", help="may be repeated"
        )
    parser.add_argument("--newest", action="store_true", help="the newest releases, too")
    parser.add_argument(
        "--database", default=DATABASE, metavar="FILE", help=f"{DATABASE} by default"
    )
    args, arguments = parser.parse_known_args(argv)
    named = itertools.product(dict.fromkeys(args.jax), dict.fromkeys(args.tensorflow))
    combinations = [Combination(*pair) for pair in named]
    if (not combinations and not args.newest) or bool(args.jax) != bool(args.tensorflow):
        parser.error("name versions by --jax and --tensorflow, or take --newest")
    if args.newest:
        try:
            found = newest(pythons())
        except MatrixError as error:
            return failed(error)
        combinations = list(dict.fromkeys([*combinations, found]))
    return sweep_all(combinations, ["--database", args.database, *arguments])


if __name__ == "__main__":
    run_command(main)
