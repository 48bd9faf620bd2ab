"""Export to TF.js."""

import os
from typing import Any

from lowering.export.directories import new_directory
from lowering.export.entry import entry
from lowering.export.tfjs import node
from lowering.export.tfjs.graph_model import QUANTIZATIONS, SHARD_BYTES, write
from lowering.export.verification import refusals
from lowering.export.verification import verify as compare
from lowering.targets import TFJS

__all__ = ["to_tfjs", "write"]


def to_tfjs(
    fun: Any,
    args: Any,
    directory: str | os.PathLike[str],
    *,
    quantize: str | None = None,
    shard_bytes: int = SHARD_BYTES,
    verify: bool = True,
    tolerance: float | None = None,
    **options: Any,
) -> None:
    """Writes a graph model that `tf.loadGraphModel` of `@tensorflow/tfjs` loads.

    Args:
      fun: a JAX function.
      args: its positional arguments: arrays or `jax.ShapeDtypeStruct`s, in pytrees.
      directory: where `model.json` and the shards of weights are written; it must not exist, or be
        empty.
      quantize: the dtype in which weights are stored: "uint8", "uint16" or "float16".
      shard_bytes: the size of a shard of weights.
      verify: whether to run the model by TF.js in Node and compare it with JAX.
      tolerance: the largest error that is accepted, relative to the largest element of an output;
        a tenth for quantized models by default.
      **options: as for `entry`: `params`, `polymorphic_shapes`, `polymorphic_constraints`,
        `input_names`, `output_names`.

    Raises:
      ValueError: for an unknown quantization.
      FileExistsError: if there is something in `directory`.
      ImportError: if Node or TF.js is missing, and the model is to be verified.
      UnsupportedError: if the model needs an op or a dtype that TF.js lacks.
      VerificationError: if the model does not compute what JAX computes.
    """
    if quantize not in (None, *QUANTIZATIONS):
        raise ValueError(f"quantize is one of {', '.join(QUANTIZATIONS)}, not {quantize!r}")
    with new_directory(directory) as written:
        if verify:
            node.check_installed()
        made = entry(fun, args, TFJS, **options)
        write(made.concrete, written, quantize=quantize, shard_bytes=shard_bytes)
        if verify:
            inputs = {spec.name: x for spec, x in zip(made.specs, made.samples, strict=True)}
            with refusals("TF.js", "run the model"):
                results = node.run(written, inputs)
            accepted = 0.1 if tolerance is None and quantize else tolerance
            in_order = {name: results[name] for name in made.outputs}
            compare("the TF.js model", made, in_order, accepted)
