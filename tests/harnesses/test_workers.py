"""Workers of a sweep have settings of their own."""

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT


@pytest.mark.parametrize("start", ["forked", "forked-before", "spawned"])
def test_settings_are_those_of_workers_alone(start, tmp_path):
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    result = subprocess.run(
        [sys.executable, "-m", "tests.harnesses.settings", tmp_path / "sweep.sqlite", start],
        cwd=ROOT,
        env={**environment, "JAX_ENABLE_X64": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
