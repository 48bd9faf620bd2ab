"""SavedModels, run by a process that cannot import JAX."""

import pathlib
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from harnesses import without_jax
from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export

_LOADER = """
    import sys

    import numpy as np
    import tensorflow as tf

    model, inputs, outputs = sys.argv[1:]
    run = tf.saved_model.load(model).signatures["serving_default"]
    results = run(**{name: tf.constant(x) for name, x in np.load(inputs).items()})
    np.savez(outputs, **{name: y.numpy() for name, y in results.items()})
"""


def _convert(program: Program, folder: pathlib.Path) -> Run:
    export.to_saved_model(path=folder / "model", **program.export_options())

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        with tempfile.TemporaryDirectory() as exchange:
            given, returned = pathlib.Path(exchange, "x.npz"), pathlib.Path(exchange, "y.npz")
            named: dict[str, Any] = {f"x{i}": x for i, x in enumerate(inputs)}
            np.savez(given, **named)
            without_jax.run(_LOADER, folder / "model", given, returned)
            results = np.load(returned)
            return [results[f"y{i}"] for i in range(len(results.files))]

    return run


CONVERTER = Converter(
    "SavedModel",
    "`export.to_saved_model`; TensorFlow runs it in a process that cannot import JAX.",
    _convert,
)
