"""Libraries that import `jax.experimental.jax2tf`: they get ops where this package is installed."""

import pytest

from tests.helpers import ROOT, run_alone, run_tests_alone


@pytest.mark.parametrize("name", ["orbax", "tensorflowjs"])
def test_a_library(name):
    run_tests_alone(ROOT / "tests" / "frameworks" / "users_of_jax2tf.py", name)


def test_export_of_keras(tmp_path):
    """In a process of its own, as TensorFlow imports Keras too, with another backend."""
    pytest.importorskip("keras")
    run_alone(
        "tests.frameworks.keras_export",
        str(tmp_path),
        KERAS_BACKEND="jax",
        TF_CPP_MIN_LOG_LEVEL="3",
    )
