"""Quantized models keep the constants that a program computes; its parameters are quantized.

Matrices of Fourier transforms, of changes of sizes, and tables of sines are no weights that were
trained: integers for them would cost digits that no tolerance accounts for.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert, export

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
ir = pytest.importorskip("onnx_ir")

from lowering.export.computed_constants import Computed  # noqa: E402
from lowering.export.onnx import to_onnx  # noqa: E402

RNG = np.random.default_rng(0)


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


SIGNAL, SQUARE = numbers(4, 512), numbers(64, 64)
FILTERS, TABLE = numbers(3, 3, 4, 16), numbers(100, 64)


def spectrum(x):
    return jnp.abs(jnp.fft.fft(x))


def resized(x):
    return jax.image.resize(x.reshape(4, 16, 32), (4, 24, 40), "cubic")


def sines(x):
    return x[:, :64] @ jnp.sin(jnp.outer(jnp.arange(64.0), jnp.arange(64.0)))


def first_features(fun):
    return lambda params, x: fun(x).reshape(4, -1)[:, :64] @ params


# Functions that compute with constants of their own, and no weights.
COMPUTED = {
    "fft": spectrum,
    "irfft": lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * jnp.exp(-jnp.arange(257.0) / 50)),
    "dct": jax.scipy.fft.dct,
    "resize": resized,
    "sines": sines,
}


@pytest.fixture(params=["dynamic", "int4"])
def quantize(request):
    return request.param


def constants(model):
    """The constants of a model, by name."""
    graph = ir.from_proto(onnx.load_from_string(bytes(model))).graph
    return {name: x.const_value for name, x in graph.initializers.items()}


def quantized_shapes(model):
    found = constants(model).items()
    return sorted(tuple(map(int, x.shape)) for name, x in found if "quantized" in name)


@pytest.mark.parametrize("name", COMPUTED)
def test_onnx_quantizes_no_matrix_that_is_computed(name, quantize):
    params = numbers(64, 64)
    model = to_onnx(first_features(COMPUTED[name]), [SIGNAL], params=params, quantize=quantize)
    assert quantized_shapes(model) == [(64, 64)]


@pytest.mark.parametrize("name", COMPUTED)
def test_onnx_without_weights_is_an_error(name, quantize):
    with pytest.raises(ValueError, match=r"finds nothing to quantize: .* computed"):
        to_onnx(COMPUTED[name], [SIGNAL], quantize=quantize)


@pytest.mark.parametrize("quantize", ["int8", "int4"])
@pytest.mark.parametrize("name", COMPUTED)
def test_tflite_quantizes_no_matrix_that_is_computed(name, quantize):
    pytest.importorskip("ai_edge_quantizer")
    # Without weights, the tolerance is that of floats.
    export.to_tflite(COMPUTED[name], [SIGNAL], quantize=quantize)
    # LiteRT refuses 4 bits for channels that are zero, as some of sines are.
    fun, params = first_features(COMPUTED[name]), numbers(64, 64)
    export.to_tflite(fun, [SIGNAL], params=params, quantize=quantize)


@pytest.mark.parametrize("name", COMPUTED)
def test_tfjs_quantizes_no_matrix_that_is_computed(name, tmp_path):
    export.to_tfjs(COMPUTED[name], [SIGNAL], tmp_path / "model", quantize="uint8")
    text = (tmp_path / "model" / "model.json").read_text()
    (group,) = json.loads(text)["weightsManifest"]
    large = [x for x in group["weights"] if np.prod(x["shape"]) >= 64]
    assert not [x["name"] for x in large if "quantization" in x]
    assert "_computed" not in text


def recurrent(x):
    """Steps with weights that a function closes over."""
    return lax.scan(lambda h, row: (jnp.tanh(row @ SQUARE + h @ SQUARE.T),) * 2, x[0], x)[1]


def normed(x):
    """A convolution whose weights absorb a batch norm."""
    axes = ("NHWC", "HWIO", "NHWC")
    y = lax.conv_general_dilated(x, FILTERS, (1, 1), "SAME", dimension_numbers=axes)
    return (y - 0.1) * lax.rsqrt(SQUARE[0, :16] ** 2 + 1e-3) + SQUARE[1, :16]


# Functions that close over weights, with a sample and the number of these.
CLOSED_OVER = {
    "NumPy": (lambda x: x @ SQUARE, numbers(4, 64), 4096),
    "JAX": (lambda x: x @ jnp.asarray(SQUARE), numbers(4, 64), 4096),
    "folded": (lambda x: x @ (jnp.asarray(SQUARE).T * 2 + 1), numbers(4, 64), 4096),
    "bfloat16": (
        lambda x: (x.astype(jnp.bfloat16) @ jnp.asarray(SQUARE, jnp.bfloat16)).astype("float32"),
        numbers(4, 64),
        4096,
    ),
    "call": (lambda x: jax.jit(lambda x: x @ SQUARE)(x), numbers(4, 64), 4096),
    "branch": (
        lambda x: lax.cond(x[0, 0] > 0, lambda x: x @ SQUARE, lambda x: x, x),
        numbers(4, 64),
        4096,
    ),
    "loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ SQUARE), x),
        numbers(4, 64),
        4096,
    ),
    "scan": (recurrent, numbers(5, 2, 64), 8192),
    "lookup": (lambda i: jnp.asarray(TABLE)[i], np.arange(6, dtype=np.int32), 6400),
    "convolution": (normed, numbers(2, 8, 8, 4), FILTERS.size),
}


@pytest.mark.parametrize("name", CLOSED_OVER)
def test_onnx_quantizes_arrays_that_a_function_closes_over(name):
    fun, x, count = CLOSED_OVER[name]
    model = to_onnx(fun, [x], quantize="dynamic")
    found = [x for name, x in constants(model).items() if "quantized" in name]
    assert sum(x.size for x in found) == count


def test_tflite_quantizes_arrays_that_a_function_closes_over():
    pytest.importorskip("ai_edge_quantizer")
    large = numbers(512, 512)
    model = export.to_tflite(lambda x: x @ large + spectrum(x), [SIGNAL], quantize="int8")
    # Two matrices of the transform, in floats.
    assert 9 * large.size < len(model) < 9.2 * large.size


def computed_of(fun):
    function = tf.function(convert(fun, target="tflite"))
    return Computed([function.get_concrete_function(tf.TensorSpec((2, 8), tf.float32))])


def test_constants_are_known_transposed_and_with_scaled_channels():
    def table():
        return jnp.sin(jnp.outer(jnp.arange(8.0), jnp.arange(1.0, 7.0)))

    matrix = np.asarray(table())
    known = computed_of(lambda x: x @ table())
    assert known.has(matrix) and known.has(matrix.T)
    assert known.has((matrix * np.arange(1, 7, dtype=np.float32)).T)
    assert not known.has(matrix + np.float32(0.1))
    assert not known.has(numbers(8, 6)) and not known.has(numbers(48, 1))
    assert not computed_of(lambda x: x @ matrix).has(matrix)
