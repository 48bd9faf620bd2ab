"""Export to ONNX.

`graph` walks a graph of TensorFlow once; values of ONNX stand for its tensors. The rule of each op
is in a table that the other modules fill, and adds nodes by a `builder`. Variables become
initializers, whose values stay where they are until they are written. Functions that are called are
inlined.
"""

import contextlib
import dataclasses
import functools
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lowering import callables
from lowering.export import (
    memory,
    quantization,
    reach,
    reports,
    representative,
    side_effects,
    signatures,
)
from lowering.export.arguments import check_flags
from lowering.export.entries import entry
from lowering.export.entry import Entry
from lowering.export.metadata import Metadata
from lowering.export.metadata import add_to_onnx as add_metadata
from lowering.export.metadata import check as check_metadata
from lowering.export.onnx import computing, quantized, saving
from lowering.export.onnx_session import session
from lowering.export.origins import located
from lowering.export.packages import import_package
from lowering.export.paths import new_path
from lowering.export.reports import Model
from lowering.export.verification import check_tolerance, refusals
from lowering.export.verification import verify as compare
from lowering.export.weights import dtypes_of
from lowering.export.without_64_bits import advising_32_bits
from lowering.targets import ONNX, Target

_log = logging.getLogger("lowering.export")


def to_onnx(
    fun: Any,
    args: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    external_data: bool = False,
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    opset: int | None = None,
    compute_dtype: str | None = None,
    quantize: str | None = None,
    representative_data: Any = None,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
    metadata: Metadata | None = None,
) -> Model | Any:
    """Makes an ONNX model.

    Without a path it returns the bytes of the model, with a report on it. With a path it writes the
    model to a file, and returns the `Report` alone.

    It has one function; ONNX has no signatures. Where `jax_enable_x64` is set, it computes with 64
    bits as JAX does, as far as onnxruntime has the ops.

    Args:
      fun: a JAX function.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees.
      path: the file to write, if any. Weights of more than 2 GB are then written to a file beside
        it, with ".data" behind its name.
      external_data: whether all but small weights are written to that file, however many they are.
      params: a pytree of arrays that the model keeps; it is the first argument of the function.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: constraints on symbolic dimensions, as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of the
        function and of the keys of the pytrees.
      output_names: the names of the leaves of the result.
      opset: the version of ONNX's set of operators, from 17 to the newest that the installed onnx
        knows; by default the newest that the installed onnxruntime runs. Other runtimes may
        need an older one: onnxruntime-web 1.30 takes 26.
      compute_dtype: "float16" for a model that computes in float16 what JAX computes in float16, as
        GPUs and WebGPU do; onnxruntime's CPU converts before and behind the ops that it has for
        float32 alone. Nothing else of the program becomes float16. By default what JAX computes in
        float16 is computed in float32, which is faster on CPUs.
      quantize: "dynamic" for weights of 8 bits of products, convolutions and embeddings, whose
        other operands are quantized when the model runs; "int8" for integers wherever onnxruntime
        has them, in pairs of QuantizeLinear and DequantizeLinear; "int4" for weights of products in
        4 bits, in blocks of 32, from opset 21 on. "int8" leaves out branches and loops. The others
        leave out constants that the program computes, such as matrices of Fourier transforms. By
        default nothing is quantized.
      representative_data: for "int8", inputs that the ranges of values are found with: tuples of
        arrays like `args`, or a function that returns some.
      verify: whether to run the model in onnxruntime and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output;
        by default a few square roots of the epsilon of the dtype, and for quantized models what the
        steps of the quantized numbers do to the results.
      overwrite: whether files at `path` are replaced; the file of weights of the model that was
        there is removed if the new one has none.
      metadata: what the model says of itself.

    Raises:
      ValueError: for several functions; for an opset or a dtype that there is not; for
        `compute_dtype`, if the program has nothing in that dtype; for an output with the name of an
        input; for weights that need a path; for labels that belong to no output; for a quantization
        that is unknown or finds no weights; for representative data that is missing, or not for it.
      FileExistsError: if there is something at `path`.
      ImportError: if onnx-ir is missing, or the runtime that verifies the model.
      UnsupportedError: if the model needs an op that ONNX or onnxruntime lacks.
      VerificationError: if the model does not compute what JAX computes.
    """
    signatures.single(fun, "an ONNX model")
    chosen = chosen_opset(opset, quantize)
    target = computing.target(compute_dtype, quantize, chosen)
    quantized.check_options(quantize, representative_data, chosen)
    if external_data and path is None:
        raise ValueError("external_data needs a path, beside which the weights are written")
    check_tolerance(tolerance)
    check_flags(external_data=external_data, verify=verify, overwrite=overwrite)
    check_metadata(metadata)
    if verify or quantize is not None:
        import_package("onnxruntime", "onnx")
    with (
        saving.without_stale_weights(path, overwrite),
        reports.making(path, "onnx", overwrite) as making,
        advising_32_bits("onnxruntime"),
    ):
        _log.info("lowering for ONNX")
        made = entry(
            fun,
            args,
            target,
            params=params,
            polymorphic_shapes=polymorphic_shapes,
            polymorphic_constraints=polymorphic_constraints,
            input_names=input_names,
            output_names=output_names,
        )
        data = (
            [] if representative_data is None else representative.inputs(made, representative_data)
        )
        concrete = made.concrete
        made.check_returns()
        _log.info("writing the model of ONNX")
        with located([made]):
            model = converted(concrete, chosen, _sizes(made), callables.name(fun), target)
        computing.check(compute_dtype, model)
        add_metadata(metadata, model)
        if path is None and not verify and quantize is None:
            return making.model(saving.serialized(model))
        with _file(making.path) as written:
            if quantize is not None:
                _log.info("quantizing")
                names = [spec.name for spec in made.specs]
                named = [dict(zip(names, arrays, strict=True)) for arrays in data]
                quantized.save(model, written, quantize, named, external_data)
            elif path is None:
                saving.check_size(model)
                saving.save(model, written)
            else:
                saving.save(model, written, external_data)
            del model
            memory.give_back()
            if verify:
                with memory.returned(saving.size(written)):
                    _verify(making, written, made, tolerance, quantize, data)
            return making.model(written.read_bytes()) if path is None else making.report()


@contextlib.contextmanager
def _file(path: pathlib.Path | None) -> Iterator[pathlib.Path]:
    """A context with a file to write: that at a path, or one that is left."""
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder) / "model.onnx"


def _verify(
    making: reports.Making,
    model: pathlib.Path,
    made: Entry,
    tolerance: float | None,
    quantize: str | None,
    data: Sequence[Sequence[np.ndarray]],
) -> None:
    """Compares the model in a file with JAX."""
    _log.info("running the model in onnxruntime")
    if quantize is not None:  # Other numbers may be beyond what it was quantized for.
        made = dataclasses.replace(made, draw=None)
        made = made if made.is_given or not data else made.with_samples(data[0])
    for sampled in reach.sampled("the ONNX model", made):
        with located([made]):
            results = run(model, sampled)
        spreads = None
        if quantize is not None:
            spreads = functools.partial(
                quantization.spread, quantization=quantization.ONNX[quantize], data=data
            )
        making.note(compare("the ONNX model", sampled, results, tolerance, spreads))


def write(
    function: Any,
    path: str | os.PathLike[str],
    *,
    opset: int | None = None,
    external_data: bool = False,
) -> None:
    """Writes a function that is lowered already as an ONNX model; its variables are frozen.

    Inputs have the names of the function's arguments, and outputs the keys of a dictionary that it
    returns, or `output_0` and so on.

    Args:
      function: a concrete function of TensorFlow.
      path: the file; it must not exist.
      opset: the version of ONNX's set of operators, as for `to_onnx`.
      external_data: whether weights are written to a file beside it, as for `to_onnx`.

    Raises:
      TypeError: for what is no concrete function.
      ValueError: for several functions, another opset, or an output that is called as an input.
      FileExistsError: if there is something at `path`.
      ImportError: if onnx-ir is missing.
      UnsupportedError: for an op that is not written to ONNX, or one with a side effect, such as an
        assignment to a variable; the error names it. Assertions and prints are left out.
    """
    (concrete,) = signatures.signatures(signatures.single(function, "an ONNX model")).values()
    chosen = chosen_opset(opset)
    _check_names(concrete, "return a dictionary with other keys")
    with new_path(path) as written:
        saving.save(converted(concrete, chosen), written, external_data)


def chosen_opset(opset: int | None, quantize: str | None = None) -> int:
    """The version of the set of operators that is asked for, or the default for a quantization.

    Raises:
      ValueError: for one that the installed onnx does not know, or that is too old.
      ImportError: if onnx-ir is missing.
    """
    import_package("onnx_ir", "onnx")
    from lowering.export.onnx import opsets

    if opset is None:
        return opsets.newest("Identity" if quantize is None else "DequantizeLinear")
    if not isinstance(opset, int) or opset not in opsets.OPSETS:
        first, last = opsets.OPSETS[0], opsets.OPSETS[-1]
        raise ValueError(f"opset is a number from {first} to {last}, not {opset!r}")
    return opset


def converted(
    concrete: Any,
    opset: int | None = None,
    sizes: Any = None,
    name: str | None = None,
    target: Target = ONNX,
) -> Any:
    """The model of a concrete function, an `onnx_ir.Model`.

    Args:
      concrete: the function.
      opset: the version of the set of operators, as for `to_onnx`.
      sizes: the shapes of inputs and outputs, by name, with names for symbolic sizes.
      name: the name of its graph, by default that of the function.
      target: the target that the function has been lowered for.

    Raises:
      ValueError: for another opset, or an output that is called as an input.
      ImportError: if onnx-ir is missing.
      UnsupportedError: for an op that is not written to ONNX, or one with a side effect.
    """
    chosen = chosen_opset(opset)
    _check_names(concrete, "give other output_names")
    side_effects.check(concrete, "an ONNX model")
    from lowering.export.onnx.model import model

    kept = map(np.dtype, target.computed_like)
    return model(concrete, chosen, sizes, dtypes_of([concrete]), name or concrete.graph.name, kept)


def _check_names(concrete: Any, advice: str) -> None:
    """Raises a ValueError, with advice, if an output is called as an input."""
    both = {x.op.name for x in signatures.inputs(concrete)} & set(signatures.output_names(concrete))
    if both:
        raise ValueError(
            "ONNX has one name for one array, but inputs and outputs are both called "
            f"{', '.join(sorted(both))}; {advice}"
        )


def _sizes(made: Entry) -> Any:
    """The shapes of inputs and outputs by name, where TensorFlow does not know all of them."""
    tensors = (*made.specs, *made.concrete.structured_outputs.values())
    return None if all(x.shape.is_fully_defined() for x in tensors) else made.sizes()


def run(model: bytes | pathlib.Path, made: Entry) -> dict[str, np.ndarray]:
    """The results of a model, or of the one in a file, in onnxruntime, for an entry's samples."""
    if not isinstance(model, bytes):
        with saving.mapped(model) as path:
            return _run(str(path), made)
    return _run(model, made)


def _run(model: bytes | str, made: Entry) -> dict[str, np.ndarray]:
    inputs = {spec.name: x for spec, x in zip(made.specs, made.samples, strict=True)}
    with refusals("onnxruntime", "run the model"):
        opened = session(model)
        taken = {node.name for node in opened.get_inputs()}
        given = {name: x for name, x in inputs.items() if name in taken}
        results = opened.run(made.outputs, given)
        del opened
    memory.give_back()
    return dict(zip(made.outputs, results, strict=True))
