"""Commands end with the right exit code, and without a traceback, whatever ends them."""

import io
import subprocess
import sys

import pytest

from tests.helpers import ROOT
from tools.terminal import Progress


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


class Time:
    """A clock that is set."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def time():
    return Time()


def test_an_estimate_goes_by_recorded_times_at_first(time):
    terminal = io.StringIO()
    progress = Progress(terminal, "sweep", workers=2, clock=time)
    progress.start(1000, 0, 1200.0)
    assert progress.left() == 600
    # The longest cell comes first; counted by cells, hours would be left.
    time.now += 30
    progress.add(1, 60.0)
    assert progress.left() == pytest.approx(570)
    progress.close()
    first, last = terminal.getvalue().split("\r")[1:3]
    assert "0 of 1000 cells, about 10 min by recorded times" in first
    assert last.startswith("  5%") and "1 of 1000 cells, about 10 min left" in last


def test_an_estimate_is_corrected_by_what_is_measured(time):
    """On a machine that is four times slower than that of the recorded times."""
    progress = Progress(io.StringIO(), "sweep", workers=2, clock=time)
    progress.start(2000, 0, 2000.0)
    errors = []
    for _ in range(199):
        time.now += 20
        progress.add(10, 10.0)
        real = 2.0 * (2000 - progress.done)
        errors.append(abs(progress.left() / real - 1))
    assert errors == sorted(errors, reverse=True)
    assert errors[4] < 0.25 and errors[20] < 0.1 and errors[-1] < 0.03
    progress.add(10, 10.0)
    assert progress.left() == 0
    progress.close()


def test_without_recorded_times_there_is_no_estimate_before_something_is_done(time):
    progress = Progress(io.StringIO(), "evaluation", clock=time)
    progress.start(10, 2)
    assert progress.left() is None
    time.now += 10
    progress.add(1)
    assert progress.left() == 70
    progress.close()


def test_a_run_that_has_nothing_left_to_do(time):
    terminal = io.StringIO()
    progress = Progress(terminal, "sweep", clock=time)
    progress.start(0, 0, 0.0)
    progress.close()
    assert "0 of 0 cells" in terminal.getvalue()
