"""Programs of other people's libraries convert, are saved, and run in the runtimes of exports.

Two of those whose library is installed take their turn; LOWERING_TURNS=all runs all. The libraries
are in the extras `frameworks` and `programs`.
"""

import importlib.util
import os
import pathlib

import jax
import numpy as np
import pytest

from lowering import export
from tests.frameworks.checks import check
from tests.frameworks.programs import makers
from tests.helpers import run_tests_alone
from tests.turns import ALL, number

MAKERS = makers()


def library(name):
    return name.partition("-")[0]


INSTALLED = [name for name in MAKERS if importlib.util.find_spec(library(name))]
IN_TURN = sorted(INSTALLED, key=lambda name: number("programs", name))[:2]

# What programs of a library need in the environment of a process of their own: Keras chooses its
# backend when it is imported.
ENVIRONMENTS = {"keras_hub": {"KERAS_BACKEND": "jax"}}


@pytest.mark.parametrize("name", sorted(MAKERS if ALL else IN_TURN))
def test_a_program(name, tmp_path):
    environment = ENVIRONMENTS.get(library(name), {})
    if environment.items() <= os.environ.items():
        _check(name, tmp_path)
    else:
        run_tests_alone(pathlib.Path(__file__), name, LOWERING_TURNS="all", **environment)


def _check(name, tmp_path):
    made = MAKERS[name]()
    args = jax.tree.map(np.asarray, made.args)
    check(
        made.fun,
        *args,
        modes=("graph", "compiled"),
        differentiable=made.differentiable,
        tolerance=made.tolerance,
    )
    export.to_tflite(made.fun, args, tolerance=made.tolerance)
    export.to_onnx(made.fun, args, tolerance=made.tolerance)
    export.to_tfjs(made.fun, args, tmp_path, tolerance=made.tolerance)
