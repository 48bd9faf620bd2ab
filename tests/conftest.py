"""Settings and order of all tests, and a fixture that several directories use."""

import os
import sys
from typing import Any

import pytest

# TensorFlow, which reads this when it is imported, is to log errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# What equinox and its family do about an error in a program, read when equinox is imported. By
# default they call back into Python, which XLA cannot compile in a TensorFlow graph, and which no
# SavedModel can hold.
os.environ.setdefault("EQX_ON_ERROR", "nan")

import jax
import tensorflow as tf

import harnesses  # noqa: F401  Asks JAX for virtual devices, before it runs anything.
from limitations import all_limitations
from lowering import convert
from tests.helpers import MODES, in_mode
from tests.passes import checking
from tools.ci import selecting

# In all tests.
checking.install()

# The files of the longest tests.
_LONGEST = ("test_primitives.py", "test_random_programs.py", "test_small_models.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leaves what CI has selected, and puts the longest tests first, after they have been shuffled.

    So the processes of pytest-xdist end at about the same time.
    """
    items.sort(key=lambda item: item.path.name not in _LONGEST)
    selecting.select(config, items)


def pytest_terminal_summary(terminalreporter):
    selecting.summarize(terminalreporter)


_READ_BY_US = ("JAX_", "LOWERING_", "TF_", "XLA_")


def _shared_state() -> dict[str, Any]:
    """What all tests of a process share and none may leave changed: their order is a random one."""
    environment = {key: value for key, value in os.environ.items() if key.startswith(_READ_BY_US)}
    return {
        **{f"limitations of {name}": of for name, of in all_limitations().items()},
        **{f"JAX's {name}": value for name, value in jax.config.values.items()},
        **{f"environment's {name}": value for name, value in environment.items()},
        "sys.path": list(sys.path),
        "working directory": os.getcwd(),
        "TensorFlow's optimizer": dict(tf.config.optimizer.get_experimental_options()),
        "functions run eagerly": tf.config.functions_run_eagerly(),
    }


@pytest.fixture(autouse=True)
def _nothing_is_left_changed():
    before = _shared_state()
    yield
    after = _shared_state()
    names = before.keys() | after.keys()
    left = {n: (before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)}
    assert not left


@pytest.fixture(params=MODES)
def run(request):
    """A function that applies the conversion of a JAX function in a mode."""

    def run(fun_jax, *args, **kwargs):
        return in_mode(convert(fun_jax), request.param)(*args, **kwargs)

    return run
