"""TF Lite by TensorFlow's own converter of JAX functions, which goes through HLO."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import jax
import numpy as np
import tensorflow as tf

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.tflite import FILE
from harnesses.evaluation.program import Program


def write_hlo(program: Program, folder: pathlib.Path, flex: bool) -> None:
    """Converts by `TFLiteConverter.experimental_from_jax`, whose results are in order."""
    leaves, tree = jax.tree.flatten(program.specs)

    def function(*inputs: jax.Array) -> list[jax.Array]:
        return jax.tree.leaves(
            program.model.apply(program.params, jax.tree.unflatten(tree, inputs))
        )

    named = [(f"x{i}", leaf) for i, leaf in enumerate(leaves)]
    converter = tf.lite.TFLiteConverter.experimental_from_jax([function], [named])
    ops = [tf.lite.OpsSet.TFLITE_BUILTINS]
    converter.target_spec.supported_ops = [*ops, tf.lite.OpsSet.SELECT_TF_OPS] if flex else ops
    (folder / FILE).write_bytes(converter.convert())


@contextlib.contextmanager
def load_hlo(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    """Runs a model that has inputs x0, x1 and so on, and no signature."""
    interpreter = tf.lite.Interpreter(model_path=str(folder / FILE))

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        values = {f"x{i}": x for i, x in enumerate(inputs)}
        details = interpreter.get_input_details()
        for detail in details:
            interpreter.resize_tensor_input(detail["index"], values[detail["name"]].shape)
        interpreter.allocate_tensors()
        for detail in details:
            interpreter.set_tensor(detail["index"], values[detail["name"]])
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]

    yield run


def _write(program: Program, folder: pathlib.Path) -> None:
    write_hlo(program, folder, flex=False)


CONVERTER = Converter(
    "convert_hlo",
    "TensorFlow's deprecated `TFLiteConverter.experimental_from_jax`, which goes through HLO; the "
    "interpreter of TensorFlow runs it.",
    load_hlo,
    write=_write,
    compared=True,
)
