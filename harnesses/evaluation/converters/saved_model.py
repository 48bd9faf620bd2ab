"""SavedModels, run by a process that cannot import JAX."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program
from lowering import export

_LOADER = textwrap.dedent("""
    import sys

    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] in ("jax", "jaxlib", "flax", "lowering"):
                raise ImportError(f"{name} is blocked")

    sys.meta_path.insert(0, Blocker())
    try:
        import jax
    except ImportError:
        pass
    else:
        raise AssertionError("JAX can be imported")

    import numpy as np
    import tensorflow as tf

    model, inputs, outputs = sys.argv[1:]
    run = tf.saved_model.load(model).signatures["serving_default"]
    results = run(**{name: tf.constant(x) for name, x in np.load(inputs).items()})
    np.savez(outputs, **{name: y.numpy() for name, y in results.items()})
""")


def _convert(program: Program, folder: pathlib.Path) -> Run:
    export.to_saved_model(path=folder / "model", **program.export_options())

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        with tempfile.TemporaryDirectory() as exchange:
            given, returned = pathlib.Path(exchange, "x.npz"), pathlib.Path(exchange, "y.npz")
            named: dict[str, Any] = {f"x{i}": x for i, x in enumerate(inputs)}
            np.savez(given, **named)
            files = map(str, (folder / "model", given, returned))
            command = [sys.executable, "-c", _LOADER, *files]
            ended = subprocess.run(command, capture_output=True, text=True)
            if ended.returncode:
                raise RuntimeError(ended.stderr)
            results = np.load(returned)
            return [results[f"y{i}"] for i in range(len(results.files))]

    return run


CONVERTER = Converter(
    "SavedModel",
    "`export.to_saved_model`; TensorFlow runs it in a process that cannot import JAX.",
    _convert,
)
