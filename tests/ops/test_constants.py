"""Constants of a graph are made once and shared."""

import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from lowering.ops import constants


def test_constants_are_shared_in_a_graph():
    with tf.Graph().as_default() as graph:
        one = constants.constant([1, 2], np.int32)
        with tf.name_scope("elsewhere"):
            assert constants.constant(np.int32([1, 2])) is one
        assert constants.constant([1, 2], tf.int64) is not one
        assert constants.constant([[1, 2]], np.int32) is not one
        assert constants.integers([1, 2]) is one
    assert len(graph.get_operations()) == 3
    with tf.Graph().as_default():
        assert constants.constant([1, 2], np.int32) is not one


def test_signed_zeros_are_different_constants():
    zero, negative = constants.constant(np.float32(0.0)), constants.constant(np.float32(-0.0))
    assert not np.signbit(zero.numpy()) and np.signbit(negative.numpy())


def test_constants_made_in_a_loop_are_reachable_outside():
    @tf.function(autograph=False)
    def fun(x):
        (x,) = tf.while_loop(lambda x: x < 5, lambda x: [x + constants.constant(2, tf.int32)], [x])
        return x + constants.constant(2, tf.int32)

    assert fun(tf.constant(0)) == 8


def test_indices_beyond_int32():
    assert constants.integers([1, 2]).dtype == tf.int32
    assert constants.integers([]).dtype == tf.int32
    assert constants.integers([2**31]).dtype == tf.int64


def test_large_constants_are_shared_by_identity():
    large = np.arange(1 << 16, dtype=np.float32)
    with tf.Graph().as_default():
        assert constants.constant(large) is constants.constant(large)
        assert constants.constant(large) is not constants.constant(large.copy())


_ZEROS = {
    "negative": np.full(1000, -0.0),
    "table": np.full((30, 40), -0.0),
    "mixed": np.where(np.arange(1000) % 3, 0.0, -0.0),
    "last": np.array([0.0] * 999 + [-0.0]),
    "runs": np.repeat([0.0, -0.0, 1.0, -0.0, 0.0], 300),
    "tail": np.array([1.0, -0.0] + [0.0] * 1500),
    "scalar": np.array(-0.0),
}


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
@pytest.mark.parametrize("case", _ZEROS)
def test_signs_of_zeros_survive_the_optimizer_and_saving(case, dtype, tmp_path):
    zeros = _ZEROS[case].astype(dtype)

    @tf.function(input_signature=[tf.TensorSpec((), dtype)], autograph=False)
    def fun(x):
        constant = constants.constant(zeros)
        return constant, constant * x

    module = tf.Module()
    module.fun = fun
    tf.saved_model.save(module, str(tmp_path))
    one = tf.ones((), dtype)
    for results in (fun(one), tf.saved_model.load(str(tmp_path)).fun(one)):
        for result in results:
            np.testing.assert_array_equal(np.signbit(result.numpy()), np.signbit(zeros))


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("value", [complex(-0.0, -0.0), complex(0.0, -0.0), complex(-0.0, 0.0)])
def test_signs_of_complex_zeros_survive_the_optimizer(value, dtype):
    zeros = np.full(1000, value, dtype)
    result = tf.function(lambda: constants.constant(zeros), autograph=False)().numpy()
    np.testing.assert_array_equal(np.signbit(result.real), np.signbit(zeros.real))
    np.testing.assert_array_equal(np.signbit(result.imag), np.signbit(zeros.imag))
