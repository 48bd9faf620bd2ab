"""TF Lite by TensorFlow's own converter of JAX functions, which goes through HLO."""

import pathlib
from collections.abc import Sequence

import jax
import numpy as np
import tensorflow as tf

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program


def convert_hlo(program: Program, folder: pathlib.Path, flex: bool) -> Run:
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
    model = converter.convert()
    (folder / "model.tflite").write_bytes(model)
    interpreter = tf.lite.Interpreter(model_content=model)

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

    return run


def _convert(program: Program, folder: pathlib.Path) -> Run:
    return convert_hlo(program, folder, flex=False)


CONVERTER = Converter(
    "convert_hlo",
    "TensorFlow's deprecated `TFLiteConverter.experimental_from_jax`, which goes through HLO; the "
    "interpreter of TensorFlow runs it.",
    _convert,
    compared=True,
)
