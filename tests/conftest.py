"""Settings of all tests."""

import os

# Read when TensorFlow is imported: only errors are worth a line between tests.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import harnesses  # noqa: F401  Asks JAX for virtual devices, before it runs anything.


def pytest_collection_modifyitems(items):
    """The sweep takes longest, and begins first, so that processes end at about the same time."""
    items.sort(key=lambda item: item.path.name != "test_primitives.py")
