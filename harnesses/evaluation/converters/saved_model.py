"""SavedModels, run by a process that cannot import JAX."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from harnesses import without_jax
from harnesses.evaluation.converters.converter import Converter, Run, by_name
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


def _write(program: Program, folder: pathlib.Path) -> None:
    export.to_saved_model(path=folder / "model", **program.export_options())


@contextlib.contextmanager
def _load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    def run(inputs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        with tempfile.TemporaryDirectory() as exchange:
            given, returned = pathlib.Path(exchange, "x.npz"), pathlib.Path(exchange, "y.npz")
            np.savez(given, **inputs)
            without_jax.run(_LOADER, folder / "model", given, returned)
            with np.load(returned) as results:
                return dict(results)

    yield by_name(run)


CONVERTER = Converter(
    "SavedModel",
    "`export.to_saved_model`; TensorFlow runs it in a process that cannot import JAX.",
    _load,
    write=_write,
)
