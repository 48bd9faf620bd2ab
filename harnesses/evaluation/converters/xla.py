"""TensorFlow with XLA linked in."""

import contextlib
import pathlib
from collections.abc import Iterator, Sequence

import jax
import numpy as np
import tensorflow as tf

import lowering
from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program


@contextlib.contextmanager
def to_graph(program: Program, target: str) -> Iterator[Run]:
    """A context with a graph of TensorFlow, which has the parameters in variables."""
    variables = jax.tree.map(tf.Variable, program.params)
    leaves, tree = jax.tree.flatten(program.specs)
    polymorphic = None if program.shapes is None else [None, program.shapes]
    converted = lowering.convert(
        program.model.apply, target=target, polymorphic_shapes=polymorphic, with_gradient=False
    )

    @tf.function(autograph=False)
    def function(*inputs: tf.Tensor) -> list[tf.Tensor]:
        return jax.tree.leaves(converted(variables, jax.tree.unflatten(tree, inputs)))

    concrete = function.get_concrete_function(*map(tensor_spec, leaves))

    def run(inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [y.numpy() for y in concrete(*map(tf.constant, inputs))]

    yield run


def tensor_spec(struct: jax.ShapeDtypeStruct) -> tf.TensorSpec:
    """The same shape for TensorFlow, where symbolic dimensions are unknown."""
    return tf.TensorSpec([d if isinstance(d, int) else None for d in struct.shape], struct.dtype)


def _load(program: Program, _: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return to_graph(program, "xla")


CONVERTER = Converter(
    "xla", "`lowering.convert` with its default target; TensorFlow runs the graph.", _load
)
