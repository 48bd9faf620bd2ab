"""Libraries that import `jax.experimental.jax2tf`: they get ops where this package is installed."""

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT, run_tests_alone


@pytest.mark.parametrize("name", ["orbax", "equinox", "tensorflowjs"])
def test_a_library(name):
    run_tests_alone(ROOT / "tests" / "frameworks" / "users_of_jax2tf.py", name)


def test_export_of_keras(tmp_path):
    """In a process of its own, as TensorFlow imports Keras too, with another backend."""
    pytest.importorskip("keras")
    result = subprocess.run(
        [sys.executable, "-m", "tests.frameworks.keras_export", str(tmp_path)],
        env={**os.environ, "KERAS_BACKEND": "jax", "TF_CPP_MIN_LOG_LEVEL": "3"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-4000:]
