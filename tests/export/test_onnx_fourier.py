"""Fourier transforms in ONNX: of long powers of two they are one op, of others products."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import export
from lowering.errors import UnsupportedError

onnx = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")
onnxruntime = pytest.importorskip("onnxruntime")

RNG = np.random.default_rng(0)
FFT = jnp.fft


def real(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def complex_(*shape):
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def nodes(model):
    loaded = onnx.load_from_string(model)
    onnx.checker.check_model(loaded, full_check=True)
    graph = ir.from_proto(loaded).graph
    return collections.Counter(x.op_type for x in ir.traversal.RecursiveGraphIterator(graph))


# Functions, their operand, and how many ops of Fourier transforms their models have.
PROGRAMS = {
    "rfft": (FFT.rfft, real(3, 1024), 1),
    "rfft of one row": (FFT.rfft, real(2048), 1),
    "irfft": (FFT.irfft, complex_(3, 1025), 1),
    "irfft of one row": (FFT.irfft, complex_(1025), 1),
    "fft": (FFT.fft, complex_(2, 1, 1024), 1),
    "fft of one row": (FFT.fft, complex_(1024), 1),
    "ifft": (FFT.ifft, complex_(2, 3, 1, 2, 1024), 1),
    "first axis": (lambda x: FFT.fft(x, axis=0), complex_(1024, 3), 1),
    "two axes": (FFT.rfft2, real(1024, 1024), 2),
    "one of two axes": (FFT.ifft2, complex_(1024, 6), 1),
    "back": (lambda x: FFT.irfft(FFT.rfft(x) * 2), real(2, 2048), 2),
    "derivative": (jax.grad(lambda x: (jnp.abs(FFT.rfft(x)) ** 2).sum()), real(2, 2048), 2),
    "short": (FFT.rfft, real(3, 512), 0),
    "short inverse": (FFT.irfft, complex_(3, 513), 0),
    "no power of two": (FFT.fft, complex_(3, 1000), 0),
    "empty": (FFT.rfft, real(0, 1024), 0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    fun, x, count = PROGRAMS[name]
    model = export.to_onnx(fun, (x,), tolerance=2e-6)
    assert nodes(model)["DFT"] == count
    assert count == 0 or len(model) < 40_000


@pytest.mark.parametrize("opset", [17, 19, 20])
@pytest.mark.parametrize("name", ["rfft", "irfft of one row", "fft", "ifft"])
def test_older_opsets(name, opset):
    fun, x, _ = PROGRAMS[name]
    assert nodes(export.to_onnx(fun, (x,), tolerance=2e-6, opset=opset))["DFT"] == 1


@jax.enable_x64(True)
@pytest.mark.parametrize("name", ["rfft", "irfft", "fft", "ifft"])
def test_64_bits(name):
    fun, x, _ = PROGRAMS[name]
    wide = x.astype(np.complex128 if np.iscomplexobj(x) else np.float64)
    assert nodes(export.to_onnx(fun, (wide,), tolerance=1e-14))["DFT"] == 1


@pytest.mark.parametrize("sizes", [("b, _", [()]), ("b, c, _", [(3,), (0,)])])
def test_batches_of_any_size(sizes):
    shapes, others = sizes
    x = real(2, *others[0], 1024)
    model = export.to_onnx(FFT.rfft, (x,), polymorphic_shapes=[shapes])
    assert nodes(model)["DFT"] == 1
    session = onnxruntime.InferenceSession(model)
    for size in (0, 1, 5):
        for other in others:
            given = {session.get_inputs()[0].name: real(size, *other, 1024)}
            assert session.run(None, given)[0].shape == (size, *other, 513, 2)


@pytest.mark.parametrize("opset", [17, 20, 23])
@pytest.mark.parametrize("name", ["rfft", "rfft of one row", "irfft", "fft", "ifft"])
def test_openvino(name, opset, tmp_path):
    """It does not look at the axis of the op from opset 20 on, and has half a spectrum wrong."""
    openvino = pytest.importorskip("openvino")
    fun, x, _ = PROGRAMS[name]
    path = tmp_path / "model.onnx"
    export.to_onnx(fun, (x,), path, opset=opset)
    given = np.stack([x.real, x.imag], -1) if np.iscomplexobj(x) else x
    (found,) = openvino.Core().compile_model(path, "CPU")([given]).values()
    expected = np.asarray(fun(x))
    if np.iscomplexobj(expected):
        expected = np.stack([expected.real, expected.imag], -1)
    np.testing.assert_allclose(found, expected, atol=2e-6 * np.max(np.abs(expected)))


def of_tensors(fun, *shape):
    return tf.function(fun, autograph=False).get_concrete_function(tf.TensorSpec(shape))


def test_functions_of_tensorflow(tmp_path):
    def back(x):
        return tf.math.real(tf.signal.ifft(tf.signal.fft(tf.complex(x, x))))

    path = tmp_path / "model.onnx"
    export.onnx.write(of_tensors(back, 2, 8), path)
    x = real(2, 8)
    np.testing.assert_allclose(export.load(path)(x), x, atol=1e-6)
    for shape, length, message in (
        ((2, 6), 6, "RFFT of a length that is no power of two"),
        ((2, 6), 8, "RFFT of another length than its operand has"),
        ((2, None), 8, "RFFT of another length than its operand has"),
    ):

        def half(x, length=length):
            return tf.math.real(tf.raw_ops.RFFT(input=x, fft_length=[length]))

        with pytest.raises(UnsupportedError, match=message):
            export.onnx.write(of_tensors(half, *shape), tmp_path / "other.onnx")
