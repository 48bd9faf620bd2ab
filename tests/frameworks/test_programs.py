"""Programs of other people's libraries convert, are saved, and run in the runtimes of exports.

Two of them take their turn; LOWERING_TURNS=all runs all. The libraries are the extra `programs`;
a program whose library is missing is skipped.
"""

import importlib.util
import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from lowering import export
from tests.frameworks.checks import check
from tests.frameworks.programs import makers
from tests.helpers import ROOT
from tests.turns import ALL, number

MAKERS = makers()
NAMES = sorted(MAKERS, key=lambda name: number("programs", name))[: None if ALL else 2]

# What programs of a library need in the environment of a process of their own: Keras chooses its
# backend when it is imported.
ENVIRONMENTS = {"keras_hub": {"KERAS_BACKEND": "jax"}}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_program(name, tmp_path):
    library = name.partition("-")[0]
    environment = {**os.environ, **ENVIRONMENTS.get(library, {})}
    if environment == dict(os.environ):
        _check(name, tmp_path)
    elif importlib.util.find_spec(library) is None:
        pytest.skip(f"there is no {library}")
    else:
        _check_alone(name, environment)


def _check_alone(name, environment):
    """Runs the test of a program in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", __file__, "-k", name],
        env={**environment, "LOWERING_TURNS": "all"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert "1 passed" in result.stdout, result.stdout[-4000:]


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
    exporters = {
        "tflite": lambda: export.to_tflite(made.fun, args, tolerance=made.tolerance),
        "onnx": lambda: export.to_onnx(made.fun, args, tolerance=made.tolerance),
        "tfjs": lambda: export.to_tfjs(made.fun, args, tmp_path, tolerance=made.tolerance),
    }
    assert made.refusals.keys() <= exporters.keys()
    for format, run in exporters.items():
        if format in made.refusals:
            error, message = made.refusals[format]
            with pytest.raises(error, match=message):
                run()
        else:
            run()
