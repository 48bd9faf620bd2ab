"""The cells of a primitive are run whenever a source has changed."""

import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

from tests.helpers import ROOT


@pytest.fixture
def checkout(tmp_path):
    """A copy of the sources, to change."""
    for room in ("lowering", "harnesses", "limitations", "results", "tools", "g3doc"):
        ignored = shutil.ignore_patterns("__pycache__", "node_modules", "demo")
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignored)
    return tmp_path


@pytest.fixture
def watched(checkout):
    """A function that returns the lines that a watch has printed up to one with some text."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tools.sweep", "--watch", "clz"],
        cwd=checkout,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout), "HOME": str(checkout)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read():
        for line in process.stdout:
            lines.put(line.rstrip("\n"))

    threading.Thread(target=read, daemon=True).start()

    def until(text, seconds=120):
        seen, end = [], time.monotonic() + seconds
        while not seen or text not in seen[-1]:
            seen.append(lines.get(timeout=max(end - time.monotonic(), 0.1)))
        return seen

    yield until
    process.send_signal(signal.SIGINT)
    process.kill()


def test_watch(checkout, watched):
    first = watched("cells in")[-1]
    assert ", 0 expected failures, 0 unexpected failures, 0 unexpected passes" in first
    path = next(p for p in (checkout / "lowering/rules").rglob("*.py") if '"clz"' in p.read_text())
    text = path.read_text()

    path.write_text(f"{text}\nthis is no Python\n")
    watched("a source has changed")
    assert any("SyntaxError" in line for line in watched("cells in"))

    broken = "\n\n@rule('clz', replace=True)\ndef broken(ctx, x, **_):\n    return x\n"
    path.write_text(f"{text}\nfrom lowering.registry import rule\n{broken}")
    watched("a source has changed")
    lines = watched("cells in")
    assert any(line.startswith("unexpected: clz_") for line in lines)

    path.write_text(text)
    watched("a source has changed")
    again = watched("cells in")[-1]
    assert again.split(":")[1] == first.split(":")[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_all_processes(number, checkout):
    command = [sys.executable, "-m", "tools.sweep", "--watch", "clz"]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout), "HOME": str(checkout)}
    process = subprocess.Popen(
        command, cwd=checkout, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # Imports start processes of their own, so it counts when the first run has begun.
    assert process.stdout.readline().startswith(b"running the cells of clz")
    forks = children(process.pid)
    assert forks
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert not any(pathlib.Path(f"/proc/{fork}").exists() for fork in forks)


def children(process):
    """The processes that a process that watches has started."""
    return pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()


def test_a_primitive_that_no_harness_has():
    command = [sys.executable, "-m", "tools.sweep", "--watch", "sinn"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2
    error = done.stderr.splitlines()[-1]
    assert error.startswith("error: no harness has the primitive 'sinn'; did you mean sin")
