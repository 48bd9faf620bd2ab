"""Export to TF.js: lowering, writing the files, and running them in Node."""

import functools
import logging
import os
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lowering.export import descriptions, paths, quantization, reach, reports, signatures
from lowering.export.arguments import check_flags
from lowering.export.entries import entries
from lowering.export.entry import Entry
from lowering.export.origins import located
from lowering.export.reports import Report
from lowering.export.tfjs import graph_model, node
from lowering.export.tfjs.graph_model import SHARD_BYTES
from lowering.export.verification import Error, check_tolerance, refusals
from lowering.export.verification import verify as compare
from lowering.export.without_64_bits import in_bits_of
from lowering.targets import TFJS

_log = logging.getLogger("lowering.export")


def to_tfjs(
    fun: Any,
    args: Any,
    path: str | os.PathLike[str],
    *,
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    quantize: str | None = None,
    shard_bytes: int = SHARD_BYTES,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> Report:
    """Writes a graph model that `tf.loadGraphModel` of `@tensorflow/tfjs` loads.

    Returns a report on it, which prints as a table.

    A TF.js model has one signature. For several functions it has the inputs and outputs of all of
    them, with the name of the function in front; weights are stored once. `execute` computes the
    outputs that it is asked for, and needs only the inputs that these depend on:

        model.execute({'encode/x': x}, ['encode/result'])

    Args:
      fun: a JAX function, or several by name.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees; for several
        functions those of each by name.
      path: the directory where `model.json` and the shards of weights are written, which is new or
        empty unless `overwrite` is True.
      params: a pytree of arrays that the model keeps; it is the first argument of each function.
      polymorphic_shapes: which dimensions of `args` are symbolic, as for `convert`.
      polymorphic_constraints: constraints on symbolic dimensions, as for `convert`.
      input_names: the names of the leaves of `args`; by default those of the parameters of the
        function and of the keys of the pytrees.
      output_names: the names of the leaves of the result.
        Of several functions, these four may be mappings, with those of each by name.
      quantize: the dtype in which weights are stored: "uint8", "uint16" or "float16".
      shard_bytes: the size of a shard of weights, in bytes.
      verify: whether to run the model by TF.js in Node, on its cpu backend and by WebAssembly if
        that has all ops, and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output;
        by default a few square roots of the epsilon of its dtype, or one of a coarser dtype that
        it is computed in, and for quantized models what the steps of the weights do to
        the output (`lowering.export.quantization`).
      overwrite: whether a model in `path` is replaced, once the new one is verified.

    Raises:
      ValueError: for an unknown quantization, or a size that is not positive.
      FileExistsError: if there is something in `path`.
      ImportError: if Node or TF.js is missing, and the model is to be verified.
      UnsupportedError: if the model needs an op or a dtype that TF.js lacks.
      VerificationError: if the model does not compute what JAX computes.
    """
    graph_model.check_options(quantize, shard_bytes)
    check_tolerance(tolerance)
    check_flags(verify=verify, overwrite=overwrite)
    with reports.making(paths.checked(path), "tfjs", overwrite) as making, in_bits_of(TFJS):
        written = making.path
        assert written is not None
        if verify:
            node.check_installed()
        _log.info("lowering for TF.js")
        made = entries(
            fun,
            args,
            TFJS,
            params=params,
            polymorphic_shapes=polymorphic_shapes,
            polymorphic_constraints=polymorphic_constraints,
            input_names=input_names,
            output_names=output_names,
        )
        several = isinstance(fun, Mapping)
        for entry in made.values():
            entry.check_returns()
        functions = {name: entry.concrete for name, entry in made.items()}
        (concrete,) = [signatures.merged(functions)] if several else functions.values()
        _log.info("writing the graph model")
        with located(made.values()):
            graph_model.write_files(concrete, written, quantize=quantize, shard_bytes=shard_bytes)
        if not verify:
            return making.report()
        _log.info("running the model in Node")
        for name, entry in made.items():
            described = signatures.described("the TF.js model", name)
            function = name if several else ""
            for sampled in reach.sampled(described, entry):
                for errors in _verify(written, sampled, function, quantize, tolerance):
                    making.note(errors, function)
        return making.report()


def _verify(
    model: pathlib.Path, entry: Entry, function: str, quantize: str | None, tolerance: float | None
) -> Iterator[dict[str, Error]]:
    """Compares a function of a model, which has a name among several, with JAX.

    Yields the worst error of each output, for each backend that runs the model.
    """
    prefix = f"{function}/" if function else ""
    inputs = {prefix + spec.name: x for spec, x in zip(entry.specs, entry.samples, strict=True)}
    with located([entry]), refusals("TF.js", "run the model"):
        found = node.run(model, inputs, [prefix + name for name in entry.outputs])
    spreads = None
    if quantize is not None:
        spreads = functools.partial(quantization.spread, quantization=quantization.TFJS[quantize])
    name = function or descriptions.DEFAULT
    for backend, results in found.items():
        in_order = {
            name: _restored(results[prefix + name], entry.dtypes[name]) for name in entry.outputs
        }
        where = signatures.described(f"the TF.js model on {backend}", name)
        yield compare(where, entry, in_order, tolerance, spreads)


def _restored(result: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An output; one of uint32 is int32 with the same bits in TF.js."""
    return result.view(dtype) if dtype == np.uint32 and result.dtype == np.int32 else result
