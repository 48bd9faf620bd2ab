"""How the ops that are made now are executed."""

import numpy as np
import pytest
import tensorflow as tf

from lowering.ops import modes
from lowering.targets import Mode
from tests.helpers import in_mode


@pytest.mark.parametrize("mode", Mode)
def test_the_mode_is_known_also_in_loops(mode):
    seen = []

    def fun(x):
        seen.append(modes.current())

        def body(i, y):
            seen.append(modes.current())
            return i + 1, y * 2

        return tf.while_loop(lambda i, y: i < 3, body, (0, x))[1]

    in_mode(fun, mode.value)(tf.constant(1.0))
    assert set(seen) == {mode}


@pytest.mark.parametrize("mode", Mode)
def test_one_of_two_functions_is_run(mode):
    def fun(x):
        return modes.by_mode(lambda x: x + 1, lambda x: x + 2, x)

    result = in_mode(fun, mode.value)(tf.constant(1.0))
    np.testing.assert_array_equal(result, 3 if mode is Mode.COMPILED else 2)


def test_a_graph_that_is_compiled_later_has_both():
    def fun(x):
        return modes.by_mode(lambda x: x + 1, lambda x: x + 2, x)

    graph = tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec((), tf.float32))
    assert graph(tf.constant(1.0)) == 2
    compiled = tf.function(lambda x: graph(x), autograph=False, jit_compile=True)
    assert compiled(tf.constant(1.0)) == 3
