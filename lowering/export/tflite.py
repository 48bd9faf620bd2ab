"""Export to TF Lite, which LiteRT runs."""

import contextlib
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lowering.export import (
    descriptions,
    limits,
    litert,
    quantization,
    reach,
    reports,
    representative,
    signatures,
    weight_quantization,
)
from lowering.export.arguments import check_flags
from lowering.export.empty import without_empty
from lowering.export.entries import entries
from lowering.export.entry import Entry
from lowering.export.metadata import Metadata, in_tflite
from lowering.export.metadata import check as check_metadata
from lowering.export.origins import located
from lowering.export.packages import import_package
from lowering.export.paths import new_path
from lowering.export.reports import Making, Model
from lowering.export.tflite_converter import WEIGHTS_KEPT, Sample, converted
from lowering.export.verification import Spreads, check_tolerance
from lowering.export.verification import verify as compare
from lowering.export.weight_quantization import Weights
from lowering.export.without_64_bits import in_bits_of
from lowering.ops import kernels
from lowering.targets import TFLITE

_log = logging.getLogger("lowering.export")
# What `quantize` may be.
QUANTIZATIONS = (*quantization.TFLITE, *weight_quantization.NAMED)

# What `io_dtype` may be.
IO_DTYPES = ("int8", "uint8")


def to_tflite(
    fun: Any,
    args: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    quantize: str | Weights | None = None,
    representative_data: Any = None,
    io_dtype: str | None = None,
    allow_flex: bool = False,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
    metadata: Metadata | None = None,
) -> Model:
    """Makes a TF Lite model, and returns its bytes with a report on it.

    LiteRT has no empty arrays, so the model lacks inputs and outputs without elements.

    Args:
      fun: a JAX function, or several by the names of their signatures.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees; for several
        functions those of each by name.
      path: the file to write, if any.
      params: a pytree of arrays that the model keeps; it is the first argument of each function.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: constraints on symbolic dimensions, as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of the
        function and of the keys of the pytrees.
      output_names: the names of the leaves of the result.
        Of several functions, these four may be mappings, with those of each by name.
      quantize: "int8" or "int4" for weights of 8 or 4 bits, by AI Edge Quantizer, or
        `export.Weights` with the details; "dynamic" for weights of 8 bits by TensorFlow's
        converter, "float16" for weights of 16 bits, "full" for integers throughout.
      representative_data: for "full", inputs that the model may get: an iterable of tuples like
        `args`, or a function that returns one; for several functions one for each by name. The
        first is what the model is verified with, unless `args` are arrays.
      io_dtype: for "full", the dtype of inputs and outputs that are float32 otherwise: "int8" or
        "uint8". The model has their scales.
      allow_flex: whether ops may remain that only a runtime with TensorFlow's own kernels runs.
        LiteRT's interpreter has none of these kernels, so such a model cannot be verified.
      verify: whether to run the model in LiteRT's interpreter and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output;
        by default it follows from the precision of the dtype that the output is computed in,
        and for a quantized model from the steps of its quantized numbers.
      overwrite: whether a file at `path` is replaced.
      metadata: what the model says of itself, in the format that Android and MediaPipe read.

    Raises:
      ValueError: for an unknown quantization, or a full one without representative data; for an
        input with the name of a keyword of Python, such as "in"; for a label of several lines.
      FileExistsError: if there is something at `path`.
      ImportError: if the runtime that verifies the model is missing.
      UnsupportedError: if the model needs an op that LiteRT lacks, or is to be verified and has ops
        that TensorFlow's kernels run.
      VerificationError: if the model does not compute what JAX computes.
    """
    check_options(quantize, representative_data, io_dtype)
    check_tolerance(tolerance)
    check_flags(allow_flex=allow_flex, verify=verify, overwrite=overwrite)
    check_metadata(metadata, has_lines=True)
    limits.check_params("a TF Lite model", params, WEIGHTS_KEPT.get(quantize, 1))
    if verify:
        import_package("ai_edge_litert.interpreter", "tflite")
    # TensorFlow's kernels have 64 bits.
    bits = contextlib.nullcontext() if allow_flex else in_bits_of(TFLITE)
    with reports.making(path, "tflite", overwrite) as making, bits:
        model = _exported(
            making,
            fun,
            args,
            {
                "params": params,
                "polymorphic_shapes": polymorphic_shapes,
                "polymorphic_constraints": polymorphic_constraints,
                "input_names": input_names,
                "output_names": output_names,
            },
            quantize=quantize,
            representative_data=representative_data,
            io_dtype=io_dtype,
            allow_flex=allow_flex,
            verify=verify,
            tolerance=tolerance,
        )
        return making.model(in_tflite(metadata, model))


def _exported(
    making: Making,
    fun: Any,
    args: Any,
    options: Mapping[str, Any],
    *,
    quantize: str | Weights | None,
    representative_data: Any,
    io_dtype: str | None,
    allow_flex: bool,
    verify: bool,
    tolerance: float | None,
) -> bytes:
    """Implements `to_tflite`, under the setting of JAX for 64 bits that the target needs."""
    _log.info("lowering for TF Lite")
    with kernels.unchecked() if allow_flex else contextlib.nullcontext():
        made = {
            name: without_empty(entry)
            for name, entry in entries(fun, args, TFLITE, **options).items()
        }
    data = _inputs(made, representative_data, several=isinstance(fun, Mapping))
    return of_entries(
        making,
        made,
        data,
        quantize=quantize,
        io_dtype=io_dtype,
        allow_flex=allow_flex,
        verify=verify,
        tolerance=tolerance,
    )


def of_entries(
    making: Making,
    made: Mapping[str, Entry],
    data: Mapping[str, Sequence[Sequence[np.ndarray]]],
    *,
    quantize: str | Weights | None,
    io_dtype: str | None,
    allow_flex: bool,
    verify: bool,
    tolerance: float | None,
) -> bytes:
    """The model of entries by name, which have no empty arrays.

    Args:
      making: keeps the errors of verification.
      made: the entries.
      data: for "full", the representative inputs of each.
      quantize: this and the others are as for `to_tflite`.
    """
    concrete = {name: entry.concrete for name, entry in made.items()}
    _log.info("converting by TensorFlow's converter")
    with located(made.values()):
        model = converted(
            concrete,
            quantize=quantize,
            samples=lambda: _named(made, data),
            io_dtype=io_dtype,
            allow_flex=allow_flex,
        )
    if not verify:
        return model
    if allow_flex:
        litert.check_runs(model)
    _log.info("running the model in LiteRT")
    for name, entry in made.items():
        if quantize is not None:  # Other numbers may be beyond what it was quantized for.
            entry = dataclasses.replace(entry, draw=None)
        entry = entry if entry.is_given or not data else entry.with_samples(data[name][0])
        described = signatures.described("the TF Lite model", name)
        for sampled in reach.sampled(described, entry):
            with located([entry]):
                results = litert.run(model, name, sampled)
            spreads = None if quantize is None else _spreads(quantize, data.get(name, ()))
            errors = compare(described, sampled, results, tolerance, spreads)
            making.note(errors, "" if name == descriptions.DEFAULT else name)
    return model


def write(
    functions: Any,
    path: str | os.PathLike[str],
    *,
    quantize: str | Weights | None = None,
    representative_data: Callable[[], Iterable[Sample]] | None = None,
    io_dtype: str | None = None,
    allow_flex: bool = False,
) -> None:
    """Writes functions that are lowered already as a TF Lite model; their variables are frozen.

    Inputs have the names of the functions' arguments, and outputs the keys of a dictionary that a
    function returns, or `output_0` and so on.

    Args:
      functions: a concrete function of TensorFlow, or several by the names of their signatures.
      path: the file; it must not exist.
      quantize: as for `to_tflite`.
      representative_data: for "full", a function that returns an iterable of inputs by name; if
        there are several functions, of the name of one and its inputs.
      io_dtype: as for `to_tflite`.
      allow_flex: as for `to_tflite`.

    Raises:
      TypeError: for what is no concrete function.
      ValueError: for an unknown quantization, or a full one without representative data.
      FileExistsError: if there is something at `path`.
      UnsupportedError: if the converter does not take the graph.
    """
    check_options(quantize, representative_data, io_dtype)
    made = signatures.signatures(functions)
    with new_path(path) as written:
        model = converted(
            made,
            quantize=quantize,
            samples=representative_data,
            io_dtype=io_dtype,
            allow_flex=allow_flex,
        )
        written.write_bytes(model)


def check_options(
    quantize: str | Weights | None, representative_data: Any, io_dtype: str | None
) -> None:
    """Raises a ValueError for options that do not fit together."""
    if weight_quantization.of(quantize) is not None:
        weight_quantization.check_installed()
    elif quantize not in (None, *QUANTIZATIONS):
        raise ValueError(
            f"quantize is one of {', '.join(QUANTIZATIONS)}, or export.Weights; not {quantize!r}"
        )
    if quantize == "full" and representative_data is None:
        raise ValueError('quantize="full" needs representative_data')
    if quantize != "full" and representative_data is not None:
        raise ValueError('representative_data is for quantize="full"')
    if io_dtype not in (None, *IO_DTYPES):
        raise ValueError(f"io_dtype is one of {', '.join(IO_DTYPES)}, not {io_dtype!r}")
    if io_dtype is not None and quantize != "full":
        raise ValueError('io_dtype is for quantize="full"')


def _inputs(
    made: Mapping[str, Entry], data: Any, several: bool
) -> dict[str, list[list[np.ndarray]]]:
    """The representative inputs of each entry.

    Raises:
      TypeError: if they are not like the arguments.
      ValueError: if there are none for an entry, or some have another shape or dtype.
    """
    if data is None:
        return {}
    if several and (not isinstance(data, Mapping) or set(data) != set(made)):
        raise TypeError(
            f"representative_data has to be a mapping with inputs of each function: {sorted(made)}"
        )
    return {
        name: representative.inputs(entry, data[name] if several else data)
        for name, entry in made.items()
    }


def _named(
    made: Mapping[str, Entry], data: Mapping[str, Sequence[Sequence[np.ndarray]]]
) -> Iterator[Sample]:
    """Representative inputs as the converter takes them."""
    for name, entry in made.items():
        for arrays in data[name]:
            named = {spec.name: x for spec, x in zip(entry.specs, arrays, strict=True)}
            yield (name, named) if len(made) > 1 else named


def _spreads(quantize: str | Weights, data: Sequence[Sequence[np.ndarray]]) -> Spreads:
    weights = weight_quantization.of(quantize)
    if weights is None:
        what = quantization.TFLITE[str(quantize)]
    else:
        what = quantization.of_weights(weights)
    return functools.partial(quantization.spread, quantization=what, data=data)
