"""Export to TF Lite, which LiteRT runs."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.export import saved_model
from lowering.export.entry import Entry, entries
from lowering.export.packages import import_package
from lowering.export.verification import refusals
from lowering.export.verification import verify as compare
from lowering.targets import TFLITE

# What `quantize` may be.
QUANTIZATIONS = ("dynamic", "float16", "full")


def to_tflite(
    fun: Any,
    args: Any,
    *,
    quantize: str | None = None,
    representative_data: Callable[[], Iterable[Sequence[np.ndarray]]] | None = None,
    allow_flex: bool = False,
    verify: bool = True,
    tolerance: float | None = None,
    **options: Any,
) -> bytes:
    """A TF Lite model.

    LiteRT has no empty arrays, so the model lacks inputs and outputs without elements.

    Args:
      fun: a JAX function, or several by the names of their signatures.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees; for several
        functions those of each by name.
      quantize: "dynamic" for weights of 8 bits, "float16" for weights of 16 bits, "full" for
        integers throughout.
      representative_data: for "full", returns an iterable of inputs, each a sequence of arrays.
      allow_flex: whether ops may remain that only a runtime with TensorFlow's own kernels runs.
      verify: whether to run the model in LiteRT's interpreter and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output;
        a tenth for quantized models by default.
      **options: as for `entry`: `params`, `polymorphic_shapes`, `polymorphic_constraints`,
        `input_names`, `output_names`.

    Raises:
      ValueError: for an unknown quantization, or a full one without representative data.
      ImportError: if the runtime that verifies the model is missing.
      UnsupportedError: if the model needs an op that LiteRT lacks.
      VerificationError: if the model does not compute what JAX computes.
    """
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantize is one of {', '.join(QUANTIZATIONS)}, not {quantize!r}")
    if quantize == "full" and representative_data is None:
        raise ValueError('quantize="full" needs representative_data')
    if verify:
        import_package("ai_edge_litert.interpreter", "tflite")
    made = {
        name: entry.without_empty() for name, entry in entries(fun, args, TFLITE, **options).items()
    }
    model = converted(made, quantize, representative_data, allow_flex)
    if verify:
        accepted = 0.1 if tolerance is None and quantize else tolerance
        for name, entry in made.items():
            compare("the TF Lite model", entry, run(model, name, entry), accepted)
    return model


def converted(
    made: Mapping[str, Entry],
    quantize: str | None = None,
    representative_data: Callable[[], Iterable[Sequence[np.ndarray]]] | None = None,
    allow_flex: bool = False,
) -> bytes:
    """The model of entries by name; the other arguments are those of `to_tflite`."""
    with tempfile.TemporaryDirectory() as folder:
        saved_model.save(made, folder)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder, signature_keys=list(made))
        keep_infinities(converter)
        builtins = tf.lite.OpsSet.TFLITE_BUILTINS
        if quantize is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "full":
            converter.representative_dataset = representative_data
            builtins = tf.lite.OpsSet.TFLITE_BUILTINS_INT8
        flex = [tf.lite.OpsSet.SELECT_TF_OPS] if allow_flex else []
        converter.target_spec.supported_ops = [builtins, *flex]
        with refusals("the TF Lite converter", "convert the graph"):
            return converter.convert()


def keep_infinities(converter: Any) -> None:
    """Keeps a converter from making the largest finite number of each infinite constant."""
    converter.canonicalizing_inf_as_min_max_float = False


def run(model: bytes, name: str, entry: Entry) -> dict[str, np.ndarray]:
    """The results of a signature of a model in LiteRT's interpreter, for its entry's samples."""
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    named = zip(entry.specs, entry.samples, strict=True)
    with refusals("LiteRT", "run the model"):
        runner = litert.Interpreter(model_content=model).get_signature_runner(name)
        results = runner(**{spec.name: x for spec, x in named})
    return {output: results[output] for output in entry.outputs}
