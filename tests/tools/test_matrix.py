"""Sweeps with several versions, in environments that fakes of pip and of the sweep stand for."""

import re
import signal
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from tools import matrix
from tools.matrix import Combination, MatrixError

OLD, NEW = Combination("0.10.2", "2.21.0"), Combination("0.12.0.1", "2.21.0")

# What there is for each Python.
RELEASES = {
    "python3.14": {"jax": ["0.12.0.1"]},
    "python3.12": {"jax": ["0.12.0.1", "0.9.0"], matrix._TENSORFLOW: ["2.22.0", "2.21.0"]},
    "python3.11": {"jax": ["0.10.2", "0.9.0"], matrix._TENSORFLOW: ["2.21.0", "2.20.0"]},
}


class Fake:
    """Stands for pip and Python; keeps the commands."""

    def __init__(self, fails=None):
        self.commands, self.fails = [], fails

    def __call__(self, command):
        self.commands.append(" ".join(command))
        ok, output = self.fails not in command, ""
        python, packages = command[0], RELEASES.get(command[0], {})
        if "index" in command:
            found = packages.get(command[-1], [])
            ok, output = bool(found), f"{command[-1]} ({(found or [''])[0]})\nAvailable: ..."
        if "--dry-run" in command:
            wanted = [re.split("==", x) for x in command if "==" in x and "jaxlib" not in x]
            ok = all(version in packages.get(name, ()) for name, version in wanted)
        return subprocess.CompletedProcess(command, 0 if ok else 1, output, f"{python} cannot")


@pytest.fixture
def three_pythons(monkeypatch):
    monkeypatch.setattr(matrix, "pythons", lambda: list(RELEASES))


def test_the_python_that_fits():
    assert matrix.python_for(OLD, list(RELEASES), Fake()) == "python3.11"
    assert matrix.python_for(NEW, list(RELEASES), Fake()) == "python3.12"
    with pytest.raises(MatrixError, match=r"no Python has both of JAX 1.0(.|\n)*python3.11 cannot"):
        matrix.python_for(Combination("1.0", "2.21.0"), list(RELEASES), Fake())


def test_the_newest_releases_that_fit_together():
    assert matrix.newest(list(RELEASES), Fake()) == Combination("0.12.0.1", "2.22.0")
    with pytest.raises(MatrixError, match="pip finds no JAX and TensorFlow"):
        matrix.newest(["python3.14"], Fake())


def test_environments_are_made_once(three_pythons, tmp_path, monkeypatch):
    fake = Fake()
    python = matrix.environment(OLD, tmp_path, fake)
    assert python == str(tmp_path / "jax-0.10.2-tensorflow-2.21.0" / "bin" / "python")
    made = fake.commands[-3:]
    assert made[0].startswith("python3.11 -m venv")
    assert all(text in made[1] for text in (python, "jax==0.10.2", "tensorflow", "==2.21.0"))
    assert matrix.environment(OLD, tmp_path, fake) == python and fake.commands[-3:] == made

    (tmp_path / "setup.cfg").write_text("other dependencies")
    monkeypatch.setattr(matrix, "ROOT", tmp_path)
    count = len(fake.commands)
    assert matrix.environment(OLD, tmp_path, fake) == python and len(fake.commands) > count


def test_an_environment_that_cannot_be_made_is_no_environment(three_pythons, tmp_path):
    for step in ("venv", "--editable", "lowering.export.tfjs.install"):
        with pytest.raises(MatrixError, match="cannot"):
            matrix.environment(NEW, tmp_path, Fake(fails=step))
    assert not list(tmp_path.rglob(".ready"))


def test_all_combinations_are_swept_into_one_database(capsys, monkeypatch):
    ran = []

    def make(combination):
        if combination.jax == "1.0":
            raise MatrixError("there is none")
        return f"python-{combination.jax}"

    def run(command):
        ran.append(command)
        return subprocess.CompletedProcess(command, 1 if command[0] == "python-0.10.2" else 0)

    monkeypatch.setattr(matrix.sweep_all, "__defaults__", (make, run))
    argv = "--jax 0.10.2 --jax 1.0 --jax 0.12.0.1 --tensorflow 2.21.0 --primitive sort".split()
    assert matrix.main([*argv, "--mode=graph"]) == 2
    sweep = ["-m", "tools.sweep", "--database", "matrix.sqlite", "--primitive", "sort"]
    assert ran == [[f"python-{jax}", *sweep, "--mode=graph"] for jax in ("0.10.2", "0.12.0.1")]
    output = capsys.readouterr()
    assert "JAX 0.10.2 with TensorFlow 2.21.0: red" in output.out
    assert "JAX 1.0 with TensorFlow 2.21.0: not swept" in output.out
    assert "error: there is none" in output.err


def test_an_interrupt_ends_all(capsys):
    def run(command):
        return subprocess.CompletedProcess(command, 130)

    assert matrix.sweep_all([OLD, NEW], [], str, run) == 130
    assert "JAX 0.12.0.1 with TensorFlow 2.21.0: interrupted" in capsys.readouterr().out


def test_the_newest_are_swept_beside_others(three_pythons, monkeypatch):
    monkeypatch.setattr(matrix, "newest", lambda pythons: NEW)
    swept = []
    monkeypatch.setattr(matrix, "sweep_all", lambda found, arguments: swept.append(found) or 0)
    assert matrix.main("--newest --jax 0.10.2 --tensorflow 2.21.0".split()) == 0
    assert matrix.main(["--newest"]) == 0
    assert swept == [[OLD, NEW], [NEW]]


@pytest.mark.parametrize("argv", [[], ["--jax=0.10.2"], ["--newest", "--tensorflow=2.21.0"]])
def test_versions_have_to_be_named(argv, capsys):
    with pytest.raises(SystemExit):
        matrix.main(argv)
    assert "--jax and --tensorflow, or take --newest" in capsys.readouterr().err


def test_a_sweep_that_is_killed_is_not_green(capsys):
    def run(command):
        return subprocess.CompletedProcess(command, -9)

    combination = matrix.Combination("1", "2")
    assert matrix.sweep_all([combination], [], lambda _: "python", run) == 137
    assert "exit code 137" in capsys.readouterr().out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_lets_the_sweep_end_in_its_own_time(number):
    sweep = (
        "import signal, sys, time\n"
        "for n in (signal.SIGINT, signal.SIGTERM):\n"
        "    signal.signal(n, lambda *_: (time.sleep(1), sys.exit(130)))\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    script = (
        "import sys; from tools import matrix;"
        f"sys.exit(matrix.visibly([sys.executable, '-c', {sweep!r}]).returncode)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors) == (130, b"")
