"""An op is emitted in a dtype for which TensorFlow has a kernel."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.ops import constants, emission
from tests.helpers import MODES, in_mode


@pytest.mark.parametrize("mode", MODES)
def test_emit_computes_in_a_wider_dtype(mode):
    fun = in_mode(lambda x: emission.emit("Erf", x), mode)
    x = tf.constant([0.5, -1], tf.bfloat16)
    assert fun(x).dtype == tf.bfloat16
    np.testing.assert_allclose(tf.cast(fun(x), tf.float32), [0.52, -0.84], rtol=1e-2)


def test_emit_computes_modulo_the_width():
    x = tf.constant([2**32 - 1, 5], tf.uint32)
    result = emission.emit("Cumsum", x, constants.constant(0, tf.int32), modular=True)
    assert result.dtype == tf.uint32
    np.testing.assert_array_equal(result, [2**32 - 1, 4])


def test_emit_keeps_results_of_other_dtypes():
    assert emission.emit("Equal", tf.constant([1]), tf.constant([1])).dtype == tf.bool


def test_emit_takes_the_names_of_python():
    x = tf.constant([[1, 2], [3, 4]])
    np.testing.assert_array_equal(emission.emit("Sum", x, constants.integers([0])), [4, 6])
    assert emission.emit("ExpandDims", x, constants.constant(0, tf.int32)).shape == (1, 2, 2)


def test_emit_of_an_unknown_op_or_dtype():
    with pytest.raises(ValueError, match="no op 'NoSuchOp'"):
        emission.emit("NoSuchOp", tf.constant(1))
    with pytest.raises(UnsupportedError, match="no Erf for complex64"):
        emission.emit("Erf", tf.constant(1, tf.complex64))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.uint32, np.uint64, np.bool_])
def test_move_keeps_the_bits(dtype):
    x = np.arange(6).astype(dtype).reshape(2, 3)
    y = emission.move("Transpose", tf.constant(x), constants.integers([1, 0]))
    np.testing.assert_array_equal(y.numpy().view(np.uint8), x.T.copy().view(np.uint8))


def test_casts_that_change_nothing_are_no_ops():
    x = tf.constant([1.0])
    assert emission.cast(x, tf.float32) is x
    assert emission.bitcast(x, tf.float32) is x
