"""The errors of special functions are those that the documents state, and not far from JAX's."""

import json

import jax
import numpy as np
import pytest

from tools import measure_accuracy

_MEASURED = json.loads(measure_accuracy.PATH.read_text())["errors"]


# What the documents promise to be no less accurate than in JAX.
_PROMISED = [
    "lgamma",
    "digamma",
    "polygamma",
    "igamma",
    "igammac",
    "igamma_grad_a",
    "random_gamma_grad",
]


@pytest.mark.parametrize("dtype", measure_accuracy.DTYPES)
@pytest.mark.parametrize("name", _PROMISED)
def test_errors_on_a_part_are_no_larger_than_stated(name, dtype):
    """Processors differ in their instructions, and so in the last digits."""
    with jax.enable_x64(True):
        found = measure_accuracy.measure(name, dtype, count=20)
    assert found["ours"] <= 1.25 * _MEASURED[name][np.dtype(dtype).name]["ours"]


def test_every_function_is_measured():
    assert list(_MEASURED) == list(measure_accuracy.FUNCTIONS)


@pytest.mark.parametrize("name", _PROMISED)
def test_errors_are_no_larger_than_those_of_jax(name):
    """`random_gamma_grad` is not a primitive, but a program of the ops that JAX runs one by one."""
    for by_source in _MEASURED[name].values():
        theirs = "jax_op_by_op" if name == "random_gamma_grad" else "jax"
        assert by_source["ours"] <= by_source[theirs]
