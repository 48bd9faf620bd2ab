"""Short floats are rounded, and those of eight bits or fewer have the bits, as in ml_dtypes."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering import narrow_formats
from lowering.arrays import narrow_numbers
from lowering.ops import dtypes
from lowering.targets import ONNX, TF, TFJS, TFLITE, lowering_for
from lowering.tensors import rounding

FLOATS = [dtype.type for dtype in narrow_formats.FLOAT]


@pytest.mark.parametrize("target", [TF, TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_every_float16_is_rounded_as_by_ml_dtypes(dtype, target):
    x = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    x = x[~np.isnan(x)].astype(np.float32)
    expected = x.astype(dtype).astype(np.float32)

    def rounded(x):
        return narrow_numbers.fit(x, np.dtype(dtype), np.dtype(np.float32))

    actual = tf.function(lowering.convert(rounded, target=target.name), autograph=False)(x)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("target", [TF, TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda dtype: np.dtype(dtype).name)
def test_bits_and_back(dtype, target):
    bits = np.arange(1 << ml_dtypes.finfo(dtype).bits, dtype=np.uint8)
    bits = bits[~np.isnan(bits.view(dtype).astype(np.float32))]

    def there_and_back(bits):
        x = narrow_numbers.from_bits(bits, np.dtype(dtype), np.dtype(np.float32))
        return x, narrow_numbers.to_bits(x, np.dtype(dtype))

    convert = lowering.convert(there_and_back, target=target.name)
    numbers, again = tf.function(convert, autograph=False)(bits)
    np.testing.assert_array_equal(numbers, bits.view(dtype).astype(np.float32))
    np.testing.assert_array_equal(again, bits)


_UNARY = (
    *("abs", "acos", "asin", "asinh", "atan", "cbrt", "ceil", "cos", "digamma", "erf", "erf_inv"),
    *("erfc", "exp", "exp2", "expm1", "floor", "lgamma", "log", "log1p", "logistic", "neg"),
    *("reciprocal", "round", "rsqrt", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh"),
)
_BINARY = ("add", "atan2", "div", "max", "min", "mul", "pow", "rem", "sub")
_OTHERS = {
    "cumsum": jnp.cumsum,
    "dot_general": lambda x: jnp.outer(x, x),
    "gelu": jax.nn.gelu,
    "integer_pow": lambda x: x**3,
    "log2": jnp.log2,
    "reduce_sum": jnp.sum,
    "scatter-add": lambda x: x.at[1].add(x[0]),
    "scatter-mul": lambda x: x.at[1].mul(x[0]),
    "softmax": jax.nn.softmax,
}


@pytest.mark.parametrize("target", [TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", dtypes.LOW_PRECISION, ids=lambda dtype: np.dtype(dtype).name)
def test_consumers_keep_the_precision_of_float32(dtype, target):
    x, y = jnp.asarray(np.random.default_rng(0).uniform(0.1, 0.9, (2, 200)), dtype)

    def fun(x, y):
        results = {name: getattr(lax, name)(x) for name in _UNARY}
        results |= {name: getattr(lax, name)(x, y) for name in _BINARY}
        results |= {name: function(x) for name, function in _OTHERS.items()}
        return {name: result.astype(np.float32) for name, result in results.items()}

    expected = fun(x.astype(np.float32), y.astype(np.float32))
    for name, result in lowering.convert(fun, target=target, with_gradient=False)(x, y).items():
        np.testing.assert_allclose(result, expected[name], 2e-5, 1e-6, err_msg=name)


@pytest.mark.parametrize("target", [TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", dtypes.LOW_PRECISION, ids=lambda dtype: np.dtype(dtype).name)
def test_consumers_round_what_is_rounded_on_purpose(dtype, target):
    x, y = np.random.default_rng(0).uniform(0.1, 0.9, (2, 200)).astype(dtype)
    info = jnp.finfo(dtype)

    def fun(x, y):
        results = lax.reduce_precision(x * y, info.nexp, info.nmant), lax.nextafter(x * y, x)
        return [result.astype(np.float32) for result in results]

    expected = fun(x, y)
    for result, e in zip(
        lowering.convert(fun, target=target, with_gradient=False)(x, y), expected, strict=True
    ):
        np.testing.assert_array_equal(result, e)


@pytest.mark.parametrize("target", [TFLITE, ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", dtypes.LOW_PRECISION, ids=lambda dtype: np.dtype(dtype).name)
def test_what_is_rounded_on_purpose_overflows(dtype, target):
    sizes = np.float32([0, 1, 65503, 65519, 65520, 3.3e38, 3.4e38, np.inf])
    x = np.concatenate([sizes, -sizes]).astype(np.float32)
    info = jnp.finfo(dtype)

    def fun(x):
        return lax.reduce_precision(x.astype(dtype), info.nexp, info.nmant).astype(np.float32)

    actual = lowering.convert(fun, target=target, with_gradient=False)(x)
    np.testing.assert_array_equal(actual, x.astype(dtype).astype(np.float32))


@pytest.mark.parametrize("target", [ONNX, TFJS], ids=lambda target: target.name)
@pytest.mark.parametrize("dtype", dtypes.LOW_PRECISION, ids=lambda dtype: np.dtype(dtype).name)
def test_rounding_by_arithmetic_keeps_signs(dtype, target):
    """Zeros and what underflows have their signs, and what is not finite stays as it is.

    TensorFlow's kernels take subnormal numbers of float32 for zeros.
    """
    sizes = np.float32([0, 1e-40, 1e-10, 0.1, 1, 65519, 65520, 3.4e38, np.inf])
    x = np.concatenate([sizes, -sizes])
    with lowering_for(target):
        actual = rounding.narrow_to(tf.constant(x), np.dtype(dtype)).numpy()
    is_zero = np.abs(x) < np.finfo(np.float32).smallest_normal
    expected = np.where(is_zero, np.copysign(0, x), x.astype(dtype)).astype(np.float32)
    np.testing.assert_array_equal(actual.view(np.uint32), expected.view(np.uint32))
    with lowering_for(target):
        assert np.isnan(rounding.narrow_to(tf.constant(np.float32(np.nan)), np.dtype(dtype)))
