"""Runs one converter on one model, and compares the results with JAX."""

import dataclasses
import pathlib
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from harnesses.evaluation import written
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.errors import describe
from harnesses.evaluation.program import Case, Program, trace
from harnesses.evaluation.results import JAX, Row


class DifferentError(Exception):
    """A converted model does not compute what JAX computes."""


def run_jax(case: Case, expected: pathlib.Path) -> Row:
    """Traces a model with JAX, and writes what it computes to a file, for `run_converter`."""
    try:
        program = trace(case)
        arrays: dict[str, Any] = {
            f"{sample}_{i}": y
            for sample, results in enumerate(program.expected())
            for i, y in enumerate(results)
        }
    except Exception as error:
        return Row(case, JAX, ok=False, message=describe(error))
    np.savez(expected, **arrays)
    return Row(case, JAX, ok=True, multiples=dict(program.multiples))


def run_converter(program: Program, name: str, expected: pathlib.Path, folder: pathlib.Path) -> Row:
    """Converts and runs a model.

    Args:
      program: the model.
      name: the name of the converter.
      expected: the file that `run_jax` has written.
      folder: where the files of the model are written, unless they are there; see `written.write`.
    """
    row, converter = Row(program.case, name, ok=False), CONVERTERS[name]
    files = written.Written()
    if converter.write is not None:
        files = written.write(program, converter, folder)
        if files.message:
            return dataclasses.replace(row, message=files.message)
    try:
        seconds, worst = _run(program, name, expected, written.files(folder))
    except Exception as error:
        message = describe(error)
        return dataclasses.replace(row, message=message, lacks=converter.lacks(program, message))
    return dataclasses.replace(
        row, ok=True, seconds=files.seconds or seconds, file_size=files.file_size, error=worst
    )


def _run(
    program: Program, name: str, expected: pathlib.Path, files: pathlib.Path
) -> tuple[float, float]:
    """Runs a model on the samples; returns the seconds until it could, and the worst error."""
    start, worst = time.perf_counter(), 0.0
    with CONVERTERS[name].load(program, files) as run, np.load(expected) as arrays:
        seconds = time.perf_counter() - start
        for sample, inputs in enumerate(program.samples()):
            names = [n for n in arrays.files if n.startswith(f"{sample}_")]
            wanted = [arrays[f"{sample}_{i}"] for i in range(len(names))]
            results = run(jax.tree.leaves(inputs))
            worst = max(worst, compare(wanted, results, program.model.tolerance))
    return seconds, worst


def compare(
    expected: Sequence[np.ndarray], actual: Sequence[np.ndarray], tolerance: float
) -> float:
    """The largest difference of floats, as a fraction of the largest magnitude in an output.

    A runtime may hold the numbers in another dtype.

    Args:
      expected: the outputs of JAX.
      actual: the outputs to compare.
      tolerance: the largest difference that is accepted.

    Raises:
      DifferentError: if numbers or shapes differ by more. Integers and booleans have to be equal.
    """
    if len(actual) != len(expected):
        raise DifferentError(f"there are {len(actual)} outputs, JAX gives {len(expected)}")
    worst = 0.0
    for i, (e, a) in enumerate(zip(expected, map(np.asarray, actual), strict=True)):
        if a.shape != e.shape:
            raise DifferentError(f"output {i} has the shape {a.shape}, JAX gives {e.shape}")
        if e.dtype.kind != "f":
            if count := np.count_nonzero(a.astype(e.dtype) != e):
                raise DifferentError(f"{count} of the {e.size} elements of output {i} differ")
            continue
        difference = np.max(np.abs(a.astype(np.float64) - e), initial=0)
        # NaN compares as false.
        error = float(difference / (np.max(np.abs(e), initial=0) or 1))
        if not error <= tolerance:
            raise DifferentError(
                f"output {i} differs by {error:.2g} of its largest magnitude, "
                f"where {tolerance:.2g} is accepted"
            )
        worst = max(worst, error)
    return worst
