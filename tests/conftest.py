"""Settings and order of all tests, and a fixture that several directories use."""

import os

import pytest

# TensorFlow, which reads this when it is imported, is to log errors only.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import harnesses  # noqa: F401  Asks JAX for virtual devices, before it runs anything.
from lowering import convert
from tests.helpers import MODES, in_mode


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Puts the sweep first, after pytest-randomly has shuffled the tests.

    It takes longest, so that the processes of pytest-xdist end at about the same time.
    """
    items.sort(key=lambda item: item.name != "test_all_cells_are_as_expected")


@pytest.fixture(params=MODES)
def run(request):
    """A function that applies the conversion of a JAX function in a mode."""

    def run(fun_jax, *args, **kwargs):
        return in_mode(convert(fun_jax), request.param)(*args, **kwargs)

    return run
