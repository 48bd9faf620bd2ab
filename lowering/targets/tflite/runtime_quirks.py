"""What LiteRT and XNNPACK, by which it computes float32, get wrong, or refuse though documented."""

import numpy as np

from lowering.targets.quirk import quirks_of, tf
from lowering.targets.tflite.reproduction import converter_of, fails, run

_quirk = quirks_of("tflite", {"tensorflow": "2.21.0", "ai-edge-litert": "2.3.0"})
_SOURCES = "https://github.com/tensorflow/tensorflow/blob"
_XNNPACK = "https://github.com/google/XNNPACK/blob"
_LOGARITHM = f"{_XNNPACK}/690a6b8f119c86873c929d75d59b5b0586de43a9/src/f32-vlog/rational-3-3.c.in"

# Up to how many axes XNNPACK multiplies by a matrix.
MOST_AXES_OF_PRODUCTS = 6


@_quirk(
    f"{_XNNPACK}/e8e6cd03491984d1faaee5439bd5ec316f9c9196/include/xnnpack.h",
    "lowering.tensors.products._is_joined_with_reshapes",
)
def products_of_many_axes() -> bool:
    """A product with weights is joined with a reshape to one of more axes than XNNPACK has."""
    axes = (1,) * (MOST_AXES_OF_PRODUCTS - 1)
    weights = np.ones((4, 5), np.float32)
    x = np.ones((*axes, 2, 4), np.float32)
    message = "failed to delegate FULLY_CONNECTED"
    return fails(message, lambda x: tf.matmul(tf.reshape(x, [2, 4]), weights), x)


@_quirk(
    f"{_SOURCES}/2a96849f478627ad03b8f20f8c71e85d6d7480e3/tensorflow/lite/kernels/pow.cc",
    "lowering.rules.binary.pow_tflite",
)
def powers_that_overflow() -> bool:
    """Third powers that overflow are the largest finite number, not infinity."""
    return bool(np.isfinite(run(lambda x: x**3, np.array([1e20], np.float32))[0]))


@_quirk(
    f"{_XNNPACK}/e8e6cd03491984d1faaee5439bd5ec316f9c9196/src/f32-vsqrt/simd-rsqrt.c.in",
    "lowering.rules.binary._by_quarters",
)
def roots_of_the_largest_numbers() -> bool:
    """XNNPACK's square roots of numbers above 2^126 are by half too large."""
    largest = np.array([3e38], np.float32)
    return not np.allclose(run(tf.sqrt, largest), np.sqrt(largest), rtol=0.1)


@_quirk(
    f"{_XNNPACK}/89dc6118d5513103b334ef1a34e7d3d14946539a/src/f32-vrsqrt/simd-rsqrt.c.in",
    "lowering.rules.unary.rsqrt_tflite",
)
def inverse_root_of_zero() -> bool:
    """XNNPACK's inverse root of zero is NaN, not infinity."""
    return bool(np.isnan(run(tf.math.rsqrt, np.zeros(1, np.float32))[0]))


@_quirk(
    f"{_XNNPACK}/e207898be9693d8b477f562594d2e2473ca6bc14/src/f32-vexp/rational-3-2.c.in",
    ("lowering.rules.unary.exp2_tflite", "lowering.ops.substitutes.exponentials.exponential"),
)
def digits_of_large_exponentials() -> bool:
    """XNNPACK's exponentials of large numbers have an error of 2^-18."""
    x = np.linspace(80, 88, 1001, dtype=np.float32)
    return not np.allclose(run(tf.exp, x), np.exp(x.astype(np.float64)), rtol=2e-6)


@_quirk(
    _LOGARITHM,
    ("lowering.rules.unary.log2_tflite", "lowering.ops.substitutes.exponentials.logarithm"),
)
def digits_of_logarithms_near_one() -> bool:
    """XNNPACK's logarithms of numbers near one have three digits."""
    x = np.linspace(0.999, 1.001, 1001, dtype=np.float32)
    return not np.allclose(run(tf.math.log, x), np.log(x.astype(np.float64)), rtol=1e-4, atol=0)


@_quirk(
    _LOGARITHM,
    (
        "lowering.ops.substitutes.exponentials._finite_log",
        "lowering.ops.substitutes.exponentials._log_of_double",
        "lowering.rules.special._digamma_of_any_log",
    ),
)
def logarithms_of_the_largest_numbers() -> bool:
    """XNNPACK's logarithms of the largest numbers are infinite, or that of infinity is finite.

    The former is so on processors with AVX-512, the latter on others.
    """
    largest, infinite = run(tf.math.log, np.array([3.4e38, np.inf], np.float32))
    return bool(np.isinf(largest) or np.isfinite(infinite))


@_quirk(
    f"{_SOURCES}/0854f7c6661b6f268c1731ba955f9ee52fd95667/tensorflow/lite/kernels/reverse.cc",
    "lowering.rules.shape.rev",
)
def reverse_of_axes_apart() -> bool:
    """Only neighbouring axes are reversed together."""
    x = np.ones((2, 2, 2), np.float32)
    return fails("Non-contiguous `axes` not supported", lambda x: tf.reverse(x, [0, 2]), x)


@_quirk("https://github.com/google-ai-edge/LiteRT", "lowering.export.empty.without_empty")
def empty_inputs() -> bool:
    """An input without elements is refused."""
    empty = np.zeros((0, 3), np.float32)
    return fails("", lambda x: tf.concat([x, x], 0), empty)


@_quirk(
    "https://github.com/google-ai-edge/LiteRT",
    "lowering.export.separate_outputs.separated",
)
def outputs_that_are_inputs() -> bool:
    """With CompiledModel, an output that is an input has the wrong buffer.

    LiteRT gives each input and output of a model a buffer. What is computed of the input is wrong,
    too, and so is one of two outputs that are one tensor.
    """
    from ai_edge_litert.compiled_model import CompiledModel
    from ai_edge_litert.hardware_accelerator import HardwareAccelerator

    model = converter_of(lambda x: {"a": x, "b": x + 1}, [tf.TensorSpec([2])]).convert()
    compiled = CompiledModel.from_buffer(model, HardwareAccelerator.CPU)
    inputs, outputs = compiled.create_input_buffers(0), compiled.create_output_buffers(0)
    inputs[0].write(np.array([5, 7], np.float32))
    compiled.run_by_index(0, inputs, outputs)
    results = sorted(tuple(output.read(2, np.float32).tolist()) for output in outputs)
    return results != [(5, 7), (6, 8)]
