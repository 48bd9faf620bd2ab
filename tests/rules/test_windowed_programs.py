"""Programs around windowed ops survive TensorFlow's graph optimizer, and compute what JAX does."""

import itertools
import os
import subprocess
import sys

import pytest

from tests import turns
from tests.helpers import ROOT
from tests.rules.windowed_programs import ROUND

_BATCHES = 3
_SIZE = ROUND // _BATCHES


# After each change of sources other programs are run, and each batch with or without oneDNN.
@pytest.mark.parametrize(
    ("batch", "onednn"), [(batch, (batch + turns.number()) % 2 == 0) for batch in range(_BATCHES)]
)
def test_windowed_programs(batch, onednn):
    first = (batch + _BATCHES * (turns.number("round") % 4)) * _SIZE
    done = subprocess.run(
        [sys.executable, "-m", "tests.rules.windowed_programs", str(first), str(first + _SIZE)],
        cwd=ROOT,
        env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": str(int(onednn))},
        capture_output=True,
        text=True,
    )
    lines = done.stdout.splitlines()
    failures = [pair for pair in itertools.pairwise(lines) if pair[1].startswith("FAILED")]
    assert not failures
    assert done.returncode == 0, f"the process ended in {lines[-1]}: {done.stderr[-2000:]}"
