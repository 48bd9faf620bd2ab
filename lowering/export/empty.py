"""Entries without empty arrays, for runtimes that take none."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.errors import UnsupportedError
from lowering.export.entry import Entry


def without_empty(entry: Entry) -> Entry:
    """The entry without inputs and outputs that have no elements.

    LiteRT does not take these; see `tflite.runtime_quirks.empty_inputs`.

    Raises:
      UnsupportedError: if no output is left.
    """
    entry.check_returns()
    results = entry.concrete.structured_outputs
    outputs = [name for name in entry.outputs if 0 not in results[name].shape]
    kept = [0 not in spec.shape for spec in entry.specs]
    if not outputs:
        raise UnsupportedError("all results are empty arrays, so there is nothing to compute")
    if all(kept) and len(outputs) == len(entry.outputs):
        return entry

    def run(*given: Any) -> dict[str, tf.Tensor]:
        rest = iter(given)
        tensors = [
            next(rest) if is_kept else tf.zeros(spec.shape, spec.dtype)
            for spec, is_kept in zip(entry.specs, kept, strict=True)
        ]
        found = entry.function(*tensors)
        return {name: found[name] for name in outputs}

    def kept_of(items: Sequence[Any]) -> list[Any]:
        return [item for item, is_kept in zip(items, kept, strict=True) if is_kept]

    def arguments(arrays: Sequence[np.ndarray]) -> tuple[Any, ...]:
        rest = iter(arrays)
        full = [
            next(rest) if is_kept else sample
            for sample, is_kept in zip(entry.samples, kept, strict=True)
        ]
        return entry.reference.arguments(full)

    def of_results(found: Any) -> list[np.ndarray]:
        named = zip(entry.outputs, entry.reference.results(found), strict=True)
        return [x for name, x in named if name in outputs]

    return dataclasses.replace(
        entry,
        function=tf.function(run, autograph=False),
        specs=kept_of(entry.specs),
        reference=dataclasses.replace(entry.reference, arguments=arguments, results=of_results),
        samples=kept_of(entry.samples),
        outputs=outputs,
        inputs=lambda given: kept_of(entry.inputs(given)),
    )
