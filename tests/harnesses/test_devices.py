"""The device of a cell is the one that runs it."""

import os
import subprocess
import sys

from harnesses import cell
from harnesses.harness import all_harnesses
from tests.helpers import ROOT
from tools import sweep


def test_cells_run_on_their_devices():
    """In a process of its own, as devices are made once."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.harnesses.placed"],
        cwd=ROOT,
        env={**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=3"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_runtimes_of_consumers_are_on_the_cpu():
    harness = next(iter(all_harnesses().values()))
    cells = cell.cells_of(harness, targets=["tflite"], devices=["cpu", "gpu"])
    assert {(c.mode, c.device) for c in cells} == {
        ("graph", "cpu"),
        ("graph", "gpu"),
        ("runtime", "cpu"),
    }


def test_a_missing_device_is_one_line(tmp_path, capfd):
    argv = ["--primitive=sin", "--device=gpu", f"--database={tmp_path}/sweep.sqlite"]
    assert sweep.main(argv) == 2
    expected = "error: TensorFlow finds no device 'gpu' on this machine"
    assert capfd.readouterr().err.splitlines() == ["making harnesses ...", expected]
    assert sweep.main(["--bisect=sin_float32", "--device=gpu"]) == 2
    assert capfd.readouterr().err.splitlines() == [expected]
