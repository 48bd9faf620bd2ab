"""TensorFlow's converter to TF Lite, and what its models need before and after it."""

import pathlib
import tempfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.export import (
    argument_order,
    limits,
    memory,
    saved_model,
    separate_outputs,
    weight_quantization,
)
from lowering.export.composites import replace_composites
from lowering.export.computed_constants import Computed
from lowering.export.tflite_objects import packed, share_buffers, unpacked
from lowering.export.tflite_weights import store_weights
from lowering.export.transposes import keep_transposes
from lowering.export.verification import refusals
from lowering.export.weight_quantization import Weights
from lowering.export.weights import dtypes_of, sizes_in_16_bits

# The fraction of the bytes of weights that a quantization leaves.
WEIGHTS_KEPT: Mapping[Any, float] = {"dynamic": 1 / 4, "float16": 1 / 2, "full": 1 / 4}

# Inputs by name, or the name of a signature and its inputs.
Sample = Mapping[str, np.ndarray] | tuple[str, Mapping[str, np.ndarray]]


def converted(made: Mapping[str, Any], **options: Any) -> bytes:
    """The model of concrete functions by name; the options are those of `_converted`.

    Outputs that are inputs, or that are the same as others, are copies: see `separate_outputs`.
    """
    weights = weight_quantization.of(options["quantize"])
    part = 1 if weights is not None else WEIGHTS_KEPT.get(options["quantize"], 1)
    limits.check_weights("a TF Lite model", made.values(), part)
    if weights is not None:
        options = {**options, "quantize": None}
    root = unpacked(_converted(made, **options))
    shared = separate_outputs.shared(root)
    if shared:
        separated = {
            name: separate_outputs.separated(concrete, shared[name]) if name in shared else concrete
            for name, concrete in made.items()
        }
        root = unpacked(_converted(separated, **options))
    share_buffers(root)
    argument_order.set_order(root, made)
    if weights is not None:
        with refusals("AI Edge Quantizer", "quantize the model"):
            return weight_quantization.quantized(root, weights, Computed(made.values()))
    if options["quantize"] is None:
        functions = list(made.values())
        store_weights(root, dtypes_of(functions), sizes_in_16_bits(functions))
    return packed(root)


def _converted(
    made: Mapping[str, Any],
    *,
    quantize: str | Weights | None,
    samples: Callable[[], Iterable[Sample]] | None,
    io_dtype: str | None,
    allow_flex: bool,
) -> bytes:
    """The model as the converter makes it; the arguments are those of `tflite.write`."""
    with tempfile.TemporaryDirectory() as folder:
        saved_model.save(made, folder)
        replace_composites(pathlib.Path(folder))
        keep_transposes(pathlib.Path(folder))
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(made))
        # That has loaded the weights, to find the signatures; the conversion loads them again.
        memory.collect(limits.size_of_weights(made.values()))
        keep_infinities(converter)
        avoid_copies(converter, is_quantizing=quantize is not None)
        builtins = tf.lite.OpsSet.TFLITE_BUILTINS
        if quantize is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "full":
            converter.representative_dataset = samples
            builtins = tf.lite.OpsSet.TFLITE_BUILTINS_INT8
        if io_dtype is not None:
            converter.inference_input_type = tf.as_dtype(io_dtype)
            converter.inference_output_type = tf.as_dtype(io_dtype)
        flex = [tf.lite.OpsSet.SELECT_TF_OPS] if allow_flex else []
        converter.target_spec.supported_ops = [builtins, *flex]
        with refusals("the TF Lite converter", "convert the graph"):
            return converter.convert()


def keep_infinities(converter: Any) -> None:
    """Keeps the infinite constants that `tflite.quirks.finite_infinities` makes finite."""
    converter.canonicalizing_inf_as_min_max_float = False


def avoid_copies(converter: Any, *, is_quantizing: bool) -> None:
    """Lets the converter return what its compiler has made, of which weights are the most.

    It would add its own version to the model, and look for buffers that are the same: both read the
    model and write it again in Python, with several copies. Its quantizers do not read buffers that
    are behind the flatbuffer.
    """
    converter.exclude_conversion_metadata = True
    converter._experimental_use_buffer_offset = not is_quantizing
