"""Functions of the graph are made once, and only so many are kept."""

import jax
import numpy as np
import tensorflow as tf

from lowering.core import outlining
from lowering.core.outlining import Functions

AVAL = jax.ShapeDtypeStruct((2,), np.float32)


def call(functions, key, x, traced):
    def lower(variables, x):
        traced.append(key)
        return [tf.convert_to_tensor(x) * 2]

    return functions.call(key, lower, [x], [AVAL], {})


def test_a_function_is_made_once_for_all_tensors():
    functions, traced = Functions(), []
    for x in (tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0])):
        (result,) = call(functions, "double", x, traced)
        np.testing.assert_array_equal(result, 2 * x)
    assert traced == ["double"]


def test_known_operands_are_part_of_a_function():
    functions, traced = Functions(), []
    for x in (np.float32([1, 2]), np.float32([3, 4]), np.float32([1, 2])):
        (result,) = call(functions, "double", x, traced)
        np.testing.assert_array_equal(result, 2 * x)
    assert len(traced) == len(functions) == 2


def test_the_function_that_was_called_the_longest_ago_is_forgotten(monkeypatch):
    monkeypatch.setattr(outlining, "_LIMIT", 2)
    functions, traced, x = Functions(), [], tf.constant([1.0, 2.0])
    for key in "abacab":
        call(functions, key, x, traced)
    assert len(functions) == 2
    assert traced == ["a", "b", "c", "b"]
