"""Commands end with the right exit code, and without a traceback, whatever ends them."""

import subprocess
import sys

import pytest

from tests.helpers import ROOT


def run(body, stdout=subprocess.PIPE):
    """Runs a command line in a process; returns its exit code, output and errors."""
    script = f"from tools.terminal import run\ndef main():\n    {body}\nrun(main)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={"PYTHONIOENCODING": "ascii"},
        text=True,
    )
    return done.returncode, done.stdout, done.stderr


def test_characters_that_a_terminal_has_not():
    assert run("print('\u2264 \\udce4'); return 1") == (1, "\\u2264 \\udce4\n", "")


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        ("KeyboardInterrupt", 130, "interrupted\n"),
        ("BrokenPipeError", 141, ""),
        ("FileNotFoundError(2, 'No such file', 'x')", 2, "error: [Errno 2] No such file: 'x'\n"),
    ],
)
def test_what_ends_a_command(error, code, message):
    assert run(f"raise {error}") == (code, "", message)


def test_a_full_disk():
    with open("/dev/full", "w") as full:
        code, _, errors = run("print('x'); return 0", stdout=full)
    assert code == 2
    assert errors.startswith("error: ") and len(errors.splitlines()) == 1
