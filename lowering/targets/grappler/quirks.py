"""What TensorFlow's optimizer of graphs (grappler) makes of a composition of ops.

Many of its rewrites hold for real numbers only; others make ops that lack a kernel for the dtype.
It runs before each graph does, and when one is exported, so all targets have these.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from lowering.targets.quirk import quirks_of, tf

_quirk = quirks_of("grappler", {"tensorflow": "2.21.0"})
_SOURCES = "https://github.com/tensorflow/tensorflow/blob"
_OPTIMIZERS = "tensorflow/core/grappler/optimizers"
_ARITHMETIC = (
    f"{_SOURCES}/00383fbcd78aabd345214350f0f89e252b3fa98c/{_OPTIMIZERS}/arithmetic_optimizer.cc"
)
_FOLDING = f"{_SOURCES}/6251f976072b3db348722a8fe92b77252d626b68/{_OPTIMIZERS}/constant_folding.cc"
_REMAPPER = f"{_SOURCES}/599ec8649d9e0bccd9b6c3846d740293d0fd7ab6/{_OPTIMIZERS}/remapper.cc"


def _differs(fun: Callable[..., Any], *arrays: np.ndarray) -> bool:
    """Whether a graph gives other results than its ops one by one, or an error."""
    tensors = [tf.constant(x) for x in arrays]
    expected = fun(*tensors).numpy()
    try:
        actual = tf.function(fun, autograph=False)(*tensors).numpy()
    except tf.errors.OpError:
        return True
    is_same = np.array_equal(actual, expected, equal_nan=expected.dtype.kind in "fc")
    # They differ in the sign of zeros, too.
    return not is_same or bool(np.any(np.signbit(actual.real) != np.signbit(expected.real)))


_NUMBERS = np.linspace(1, 2, 200, dtype=np.float32)


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def negated_comparisons() -> bool:
    """The negation of a comparison becomes the opposite comparison, which differs at NaN."""
    return _differs(lambda x: ~(x > 1), np.array([np.nan], np.float32))


@_quirk(_FOLDING, "lowering.ops.optimizer.emitted")
def quotients_by_constants() -> bool:
    """A quotient by a constant becomes a product with its reciprocal, which is rounded."""
    return _differs(lambda x: x / 3.0, _NUMBERS)


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def quotients_by_roots() -> bool:
    """A quotient by a square root becomes a product with a Rsqrt, which has fewer digits."""
    return _differs(lambda x: x / tf.sqrt(x), _NUMBERS)


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def extrema_of_monotonic_functions() -> bool:
    """The extremum of a monotonic function is found among its arguments.

    So NaN is lost, what overflows, and which of several arguments with the same result is first.
    """
    return _differs(lambda x: tf.argmax(tf.nn.relu(x)), np.array([-2, -1], np.float32))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def logarithms_of_sums_with_one() -> bool:
    """The logarithm of a sum with one becomes a Log1p, which is precise where the sum is not."""
    return _differs(lambda x: tf.math.log(x + 1.0), np.array([1e-8], np.float32))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def exponentials_less_one() -> bool:
    """An exponential less one becomes an Expm1, which is precise where the difference is not."""
    return _differs(lambda x: tf.exp(x) - 1.0, np.array([1e-8], np.float32))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def sums_of_equal_complex_numbers() -> bool:
    """The sum of a number and itself becomes a product with two: NaN in a part beside infinity."""
    return _differs(lambda x: x + x, np.array([complex(np.inf, 1)], np.complex64))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def logarithms_of_softmax() -> bool:
    """The logarithm of a Softmax becomes a LogSoftmax, which is finite where the former is not."""
    return _differs(lambda x: tf.math.log(tf.nn.softmax(x)), np.array([[0, 200]], np.float32))


@_quirk(_FOLDING, "lowering.ops.optimizer.emitted")
def sums_in_another_order() -> bool:
    """Constants in sums, and in products, are joined, though these are not associative."""
    return _differs(lambda x: (x + 1e20) + -1e20, np.array([1], np.float32))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def sums_of_equal_terms_in_loops() -> bool:
    """A sum with equal terms becomes a product with a constant, which in a loop is outside of it.

    The loop then has an empty result.
    """

    def fun(x):
        return tf.while_loop(lambda x: tf.reduce_any(x < 9), lambda x: [x + x + 1], [x])[0]

    return _differs(fun, np.array([1, 2], np.int32))


@_quirk(_FOLDING, "lowering.ops.optimizer.emitted")
def differences_to_zero() -> bool:
    """The difference of zero and a number becomes a Neg, which unsigned integers lack."""
    return _differs(lambda x: np.uint8(0) - x, np.array([1], np.uint8))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def squares_of_differences() -> bool:
    """The square of a difference becomes a SquaredDifference, which lacks short integers."""
    return _differs(lambda x: tf.raw_ops.Square(x=x - 2), np.array([1], np.int16))


@_quirk(_ARITHMETIC, "lowering.ops.optimizer.emitted")
def packs_of_equal_tensors() -> bool:
    """A Pack of one tensor becomes a Tile, which fails for uint16."""
    return _differs(lambda x: tf.stack([x, x]), np.array([1], np.uint16))


@_quirk(_FOLDING, "lowering.ops.optimizer.emitted")
def complex_factors_of_one() -> bool:
    """A product with one is left out, though a complex infinity times one has NaN in a part."""
    return _differs(lambda x: x * np.complex64(1), np.array([complex(np.inf, 1)], np.complex64))


@_quirk(_ARITHMETIC, "lowering.rules.binary.pow_")
def powers_with_known_exponents() -> bool:
    """A power with a known exponent becomes another op: that of 1/2 a Sqrt, NaN for -infinity."""
    return _differs(lambda x: tf.pow(x, 0.5), np.array([-np.inf], np.float32))


@_quirk(_FOLDING, "lowering.ops.constants._loses_signs")
def signs_of_constant_zeros() -> bool:
    """A large constant of negative zeros becomes one of zeros."""
    zeros = np.full(100, -0.0, np.float32)
    return _differs(lambda x: tf.where(x > 0, zeros, x), np.ones(100, np.float32))


@_quirk(_REMAPPER, "lowering.tensors.convolutions._without_explicit_padding", ends_process=True)
def explicit_padding_of_depthwise_convolutions() -> bool:
    """A depthwise convolution that is joined with what follows loses its explicit padding.

    The process ends as the shapes do not fit. TensorFlow joins them only where it uses oneDNN, by
    default on processors with instructions for neural networks (`TF_ENABLE_ONEDNN_OPTS=1`).
    """

    def fun(x: Any) -> Any:
        padding = [[0, 0], [1, 0], [0, 1], [0, 0]]
        y = tf.nn.depthwise_conv2d(x, np.ones((2, 2, 1, 1), np.float32), [1, 1, 1, 1], padding)
        return tf.nn.relu(tf.nn.bias_add(y, [1.0]))

    return _differs(fun, np.ones((1, 3, 3, 1), np.float32))
