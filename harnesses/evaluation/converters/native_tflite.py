"""TF Lite by JAX's native serialization: the program is one XLA op, whose code is converted."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

import jax
import tensorflow as tf

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.tflite import FILE, run_by
from harnesses.evaluation.converters.xla import tensor_spec
from harnesses.evaluation.program import Program


def _write(program: Program, folder: pathlib.Path) -> None:
    from jax.experimental import jax2tf

    leaves, tree = jax.tree.flatten(program.specs)
    variables = jax.tree.map(tf.Variable, program.params)
    polymorphic = None if program.shapes is None else [None, program.shapes]
    converted = jax2tf.convert(
        program.model.apply, polymorphic_shapes=polymorphic, with_gradient=False
    )

    @tf.function(autograph=False)
    def function(**inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        given = [inputs[f"x{i}"] for i in range(len(leaves))]
        results = jax.tree.leaves(converted(variables, jax.tree.unflatten(tree, given)))
        return {f"y{i}": y for i, y in enumerate(results)}

    concrete = function.get_concrete_function(
        **{f"x{i}": tensor_spec(leaf) for i, leaf in enumerate(leaves)}
    )
    module = tf.Module()
    module.variables_of_model = jax.tree.leaves(variables)
    with tempfile.TemporaryDirectory() as saved:
        tf.saved_model.save(module, saved, signatures=concrete)
        converter = tf.lite.TFLiteConverter.from_saved_model(saved)
        converter.target_spec.supported_ops = [
            tf.lite.OpsSet.TFLITE_BUILTINS,
            tf.lite.OpsSet.SELECT_TF_OPS,
        ]
        (folder / FILE).write_bytes(converter.convert())


@contextlib.contextmanager
def _load(_: Program, folder: pathlib.Path) -> Iterator[Run]:
    yield run_by(tf.lite.Interpreter(model_path=str(folder / FILE)))


CONVERTER = Converter(
    "JAX native",
    "`jax2tf.convert` of JAX, whose graph is one op with the program in StableHLO, and the "
    "converter of TensorFlow to TF Lite with Flex; its interpreter runs it.",
    _load,
    write=_write,
    compared=True,
)
