"""What `onnx.write` does not write is named; what it can know is written."""

import re

import numpy as np
import pytest
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export import onnx

pytest.importorskip("onnx_ir")
onnxruntime = pytest.importorskip("onnxruntime")

X = tf.TensorSpec([2], tf.float32, "x")
NUMBERS = tf.constant([1 + 2j, 3], tf.complex64)


@pytest.fixture
def write(tmp_path):
    """Writes a function, and returns the path of the model."""

    def written(fun, *specs):
        path = tmp_path / "model.onnx"
        concrete = tf.function(fun, autograph=False).get_concrete_function(*specs)
        onnx.write(concrete, path)
        return path

    return written


def joined(x):
    return tf.complex(x, x)


def in_a_branch(x):
    return tf.math.real(tf.cond(x[0] > 0, lambda: joined(x), lambda: joined(-x)))


def in_a_loop(x):
    def step(i, z):
        return i + 1, z * z

    return tf.math.real(tf.while_loop(lambda i, z: i < 3, step, [0, joined(x)])[1])


NOT_WRITTEN = "which lowering does not write to ONNX"
NO_RANK = "has an unknown number of axes"
REFUSED = {
    "a sum of complex numbers": (
        lambda x: tf.math.real(joined(x) + joined(x)),
        [X],
        f"is AddV2 of complex numbers, {NOT_WRITTEN}",
    ),
    "a complex output": (
        lambda x: {"z": joined(x)},
        [X],
        f"the output 'z' is complex numbers, {NOT_WRITTEN}",
    ),
    "a complex input": (
        tf.math.real,
        [tf.TensorSpec([2], tf.complex64, "x")],
        "the input 'x': lowering writes no complex64 to ONNX",
    ),
    "complex numbers of a branch": (in_a_branch, [X], "'cond' returns complex numbers"),
    "complex numbers of a loop": (in_a_loop, [X], "'while' returns complex numbers"),
    "strings": (lambda x: (x, tf.constant(["a"])), [X], "is a constant of strings"),
    "a list": (
        lambda x: tf.TensorArray(tf.float32, 1).write(0, x).stack(),
        [X],
        f"is TensorListReserve, {NOT_WRITTEN}",
    ),
    "an input of unknown rank": (
        lambda x: x + 1,
        [tf.TensorSpec(None, tf.float32, "x")],
        f"the input 'x' {NO_RANK}",
    ),
    "an output of unknown rank": (
        tf.reshape,
        [X, tf.TensorSpec([None], tf.int32, "shape")],
        f"the output 'output_0' {NO_RANK}",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_written_is_named(name, write):
    fun, specs, message = REFUSED[name]
    with pytest.raises(UnsupportedError, match=re.escape(message)):
        write(fun, *specs)


def test_tables_are_named(write):
    keys, values = tf.constant([1, 2], tf.int64), tf.constant([3.0, 4.0])
    made = tf.lookup.KeyValueTensorInitializer(keys, values)
    table = tf.lookup.StaticHashTable(made, 0.0)
    with pytest.raises(UnsupportedError, match=f"is LookupTableFindV2, {NOT_WRITTEN}"):
        write(table.lookup, tf.TensorSpec([2], tf.int64, "x"))


def test_rows_of_variables_are_named(write):
    variable = tf.Variable([[1.0], [2.0]])
    with pytest.raises(UnsupportedError, match=f"is ResourceGather, {NOT_WRITTEN}"):
        write(lambda i: tf.nn.embedding_lookup(variable, i), tf.TensorSpec([2], tf.int32, "i"))


def test_an_identity_is_told_to_return_another_key(write):
    with pytest.raises(ValueError, match="both called x; return a dictionary with other keys"):
        write(lambda x: {"x": x}, X)


def test_known_complex_numbers_are_two_parts(write):
    variable = tf.Variable(NUMBERS)

    def fun(x):
        return (
            x
            + tf.math.real(tf.constant([5j, 7], tf.complex64))
            + tf.math.imag(NUMBERS) * tf.math.real(variable)
        )

    session = onnxruntime.InferenceSession(write(fun, X))
    (result,) = session.run(None, {"x": np.float32([1, 2])})
    np.testing.assert_array_equal(result, [3, 9])
