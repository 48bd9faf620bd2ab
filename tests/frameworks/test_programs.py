"""Programs of other people's libraries convert, are saved, and run in the runtimes of exports.

Two of them take their turn; LOWERING_TURNS=all runs all. The libraries are the extra `programs`;
a program whose library is missing is skipped.
"""

import jax
import numpy as np
import pytest

from lowering import export
from tests.frameworks.checks import check
from tests.frameworks.programs import makers
from tests.turns import ALL, number

MAKERS = makers()
NAMES = sorted(MAKERS, key=lambda name: number("programs", name))[: None if ALL else 2]


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_program(name, tmp_path):
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
