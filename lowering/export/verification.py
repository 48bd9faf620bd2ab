"""Compares what an exported model computes with JAX."""

import contextlib
import dataclasses
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import ml_dtypes
import numpy as np

from lowering import callables
from lowering.avals import HALF_FLOATS
from lowering.errors import LoweringError, UnsupportedError
from lowering.export import choices, conditioning, op_by_op, precision
from lowering.export.algorithms import on_every_device
from lowering.export.differences import difference, overflow_alike, relative
from lowering.export.entry import Entry, Reference
from lowering.export.involved import computes_with_nan
from lowering.passes.jaxprs import called_jaxprs
from lowering.registry import Trait, has_trait

_log = logging.getLogger("lowering.export")

# The tolerance, in square roots of the epsilon of a dtype: runtimes sum in another order than JAX.
# One root is enough for outputs that are computed in a coarser dtype.
_ROOTS = 4


# How far the outputs of an entry may be from JAX's in a quantized model; see `quantization.spread`.
Spreads = Callable[[Entry], Sequence[np.ndarray]]

# Dtypes by their names in MLIR.
_DTYPES = {
    "i1": "bool",
    "bf16": "bfloat16",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    **{
        f"{prefix}{n}": f"{sign}int{n}"
        for n in (8, 16, 32, 64)
        for prefix, sign in (("i", ""), ("ui", "u"))
    },
}


class VerificationError(LoweringError):
    """An exported model does not compute what JAX computes."""

    __init__ = Exception.__init__


class Error(NamedTuple):
    """How far an output is from JAX's, relative to its largest element, and how far it may be.

    Attributes:
      found: the largest difference.
      accepted: the largest that is accepted.
    """

    found: float
    accepted: float

    def __str__(self) -> str:
        return f"{self.found:.2g} ({self.accepted:.2g} is accepted)"


@contextlib.contextmanager
def refusals(runtime: str, doing: str) -> Iterator[None]:
    """A context in which errors of a converter or runtime become an UnsupportedError.

    Args:
      runtime: whose they are, as people call it.
      doing: what it does, as part of a sentence.
    """
    try:
        yield
    except (LoweringError, ImportError):
        raise
    except Exception as error:
        lacked = _lacked(str(error))
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = f"it lacks {', '.join(lacked)}" if lacked else " ".join(lines[:3] or [repr(error)])
        raise UnsupportedError(
            f"{runtime} failed to {doing}: {reason[:600]}. `lowering show` lists the ops, "
            "the primitives and lines that they come from, and the runtimes that lack them"
        ) from error


def _lacked(message: str) -> list[str]:
    """The ops that the converter of TF Lite would leave to TensorFlow, and of which dtypes.

    Its error lists them with the types of MLIR: `tf.AddV2(tensor<?x4xf64>, tensor<f64>) -> ...`.
    """
    _, _, details = message.partition("TF Select ops:")
    found = re.findall(r"tf\.(\w+)\((?:tensor<(?:[\d?*]+x)*(.+?)>[,)])?", details)
    return sorted({f"{op} of {_DTYPES.get(mlir, mlir)}" if mlir else op for op, mlir in found})


def check_tolerance(tolerance: Any) -> None:
    """Raises a ValueError for what is no tolerance, before anything is exported."""
    is_number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool)
    if tolerance is not None and not (is_number and tolerance >= 0):
        raise ValueError(f"tolerance is a number of at least 0, not {tolerance!r}")


def verify(
    name: str,
    entry: Entry,
    results: Mapping[str, np.ndarray],
    tolerance: float | None,
    spreads: Spreads | None = None,
) -> dict[str, Error]:
    """The worst error of each output, and the one that is accepted.

    Args:
      name: what was exported, and where it was run.
      entry: the entry.
      results: what the runtime made of its samples, by name.
      tolerance: the largest error that is accepted; by default a few square roots of the epsilon
        of the output's dtype, or one of a coarser dtype that it is computed in.
      spreads: for a quantized model, how far each element of the outputs of an entry may be from
        JAX's; by default that is accepted, too.

    Raises:
      VerificationError: if an output differs by more, or is of another shape, or if JAX fails to
        compute it.
    """
    errors: dict[str, Error] = {}
    bad: list[str] = []
    wrong: dict[int, str] = {}
    failed: dict[int, tuple[np.ndarray, float]] = {}
    reference, expected = _by_jax(name, entry)
    accepted_spreads: Sequence[Any] = [0.0] * len(expected)
    if spreads is not None and tolerance is None:
        accepted_spreads = spreads(entry)
    epsilons = precision.epsilons(reference, entry.samples)
    outputs = zip(results.items(), expected, accepted_spreads, strict=True)
    for i, ((output, actual), e, spread) in enumerate(outputs):
        if actual.shape != e.shape:
            raise VerificationError(
                f"{name}: the output {output!r} has the shape {actual.shape}, JAX gives {e.shape}"
            )
        actual = _without_overflows(e, actual, epsilons[i])
        found, beyond = difference(e, actual), difference(e, actual, spread)
        count = len(bad)
        if found.nan_of_model:
            bad.append(f"{output!r}, of which {found.nan_of_model}")
        if found.nan_of_jax:
            if entry.leaves_nan and computes_with_nan(reference, entry.samples):
                _log.warning("%s: of %s %s, which is left open", name, output, found.nan_of_jax)
            else:
                bad.append(f"{output!r}, of which {found.nan_of_jax}")
        accepted = _tolerance(e.dtype, epsilons[i]) if tolerance is None else tolerance
        beside = relative(float(np.max(spread)), e) if np.any(spread) else 0.0
        errors[output] = Error(found.error, accepted + beside)
        _log.info("%s: the worst error of %s is %.2g", name, output, found.error)
        if not beyond.error <= accepted:
            limit = f"{accepted:.2g} is accepted"
            if beside:
                limit += f" beside {beside:.2g} for the quantization"
            bad.append(f"{output!r} by {found.error:.2g}, where {limit} ({beyond.where})")
            wrong[i] = output
        if len(bad) > count:
            failed[i] = actual, errors[output].accepted
    if bad:
        raise VerificationError(
            f"{name} differs from JAX, relative to the largest element: {'; '.join(bad)}. "
            f"{_on_vectors(entry)}"
            f"{_on_choices(entry, spreads)}"
            f"{_on_compilation(reference, entry.samples, list(results), failed)}"
            f"{_on_conditioning(reference, entry.samples, expected, errors, wrong)}"
            "With verify=False it is not compared, and tolerance=... accepts larger errors"
        )
    return errors


def _without_overflows(e: np.ndarray, actual: np.ndarray, epsilon: float) -> np.ndarray:
    """A result with what JAX has where both overflow the 16 bits that have an epsilon."""
    for dtype in HALF_FLOATS:
        if ml_dtypes.finfo(dtype).eps == epsilon and e.dtype.kind not in "biuc":
            return np.where(overflow_alike(e, actual, dtype), e, actual).astype(actual.dtype)
    return actual


def _on_vectors(entry: Entry) -> str:
    """A sentence on primitives whose results are not unique; empty if there are none."""
    found = set()

    def look(jaxpr: Any) -> None:
        for eqn in jaxpr.eqns:
            if has_trait(eqn.primitive.name, Trait.NOT_UNIQUE):
                found.add(eqn.primitive.name)
            for inner in called_jaxprs(eqn):
                look(inner)

    look(jax.make_jaxpr(entry.reference.fun)(*entry.reference.arguments(entry.samples)))
    if not found:
        return ""
    return (
        f"The vectors of {', '.join(sorted(found))} are unique up to their signs or phases only, "
        "and runtimes may choose others. "
    )


def _on_choices(entry: Entry, spreads: Spreads | None) -> str:
    """A sentence on what a quantized model may choose otherwise; empty if there is nothing."""
    try:
        found = [] if spreads is None else choices.unsteady(entry, spreads)
    except Exception:  # As below, a hint must not hide what it is about.
        return ""
    if not found:
        return ""
    return (
        f"{', '.join(found)} chooses others, or in another order, where numbers are off by a few "
        "quantization steps: the scores are about equal for these inputs, as those of the experts "
        "in a mixture may be. Results jump then, and the model need not be worse. Give other "
        "arrays in args, or compare what matters, such as perplexity, and accept the error by "
        "tolerance=... "
    )


def _on_compilation(
    reference: Reference,
    samples: Sequence[np.ndarray],
    names: Sequence[str],
    failed: Mapping[int, tuple[np.ndarray, float]],
) -> str:
    """A sentence on outputs for which JAX itself differs, compiled and op by op, because of NaN.

    Args:
      reference: the JAX function.
      samples: inputs of it.
      names: the names of all outputs.
      failed: by the places of those that differ, what the model computes, and the error accepted.
    """
    try:
        places = op_by_op.agreeing(reference, samples, failed)
    except Exception:  # This is no more than a hint, and must not hide what it is about.
        return ""
    if not places:
        return ""
    return (
        f"JAX op by op, as with jax.disable_jit(), computes what the model does of "
        f"{', '.join(repr(names[place]) for place in places)}: XLA makes something else of NaN "
        "where it compiles several ops together. Try inputs that lead to no NaN. "
    )


def _on_conditioning(
    reference: Reference,
    samples: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    errors: Mapping[str, Error],
    wrong: Mapping[int, str],
) -> str:
    """A sentence on wrong outputs that JAX itself does not determine; empty if there are none.

    Args:
      reference: the JAX function.
      samples: inputs of it.
      expected: what JAX computes of them.
      errors: how far each output is from it.
      wrong: the names of the wrong outputs, by their places.
    """
    moves = conditioning.moves(reference, samples, expected) if wrong else []
    found = [
        f"{output!r} by {moves[i]:.2g}"
        for i, output in wrong.items()
        if moves[i] >= errors[output].found / 4
    ]
    if not found:
        return ""
    return (
        f"JAX's own results move as far, {', '.join(found)}, when the inputs change by a few "
        "rounding errors: the function is ill-conditioned or has a jump there. Try other inputs. "
    )


def _by_jax(name: str, entry: Entry) -> tuple[Reference, list[np.ndarray]]:
    """What JAX computes of the samples, and the function that its CPU runs.

    The CPU lacks some algorithms of products, which are replaced then.
    """
    reference = entry.reference
    general = dataclasses.replace(reference, fun=on_every_device(reference.fun))
    try:
        try:
            return reference, reference(*entry.samples)
        # JAX refuses such an algorithm by a ValueError. What fails while it runs is not run again.
        except ValueError:
            return general, general(*entry.samples)
    except Exception as error:
        raise VerificationError(
            f"{name} cannot be compared with JAX, which fails to run the function on its CPU: "
            f"{callables.message(error)}. With verify=False it is not compared"
        ) from error


def _tolerance(dtype: np.dtype, epsilon: float) -> float:
    if not jax.dtypes.issubdtype(dtype, np.inexact):
        return 0.0
    return max(_ROOTS * float(ml_dtypes.finfo(dtype).eps) ** 0.5, epsilon**0.5)
