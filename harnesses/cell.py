"""Cells: a harness in one mode, on one target and one device."""

import dataclasses
import enum
import functools
import itertools
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

import lowering
from harnesses import compare
from harnesses.harness import Harness
from harnesses.runs import Runs, RunsInMemory, key_of
from limitations import Limitation, limitations_of
from lowering.targets import TARGETS, TF

MODES = ("eager", "graph", "compiled")
DEVICES = ("cpu", "gpu", "tpu")


class Outcome(enum.StrEnum):
    """What happened in a cell."""

    EQUAL = "equal"
    DIFFERENT = "different"
    LOWERING_ERROR = "lowering error"
    TF_ERROR = "TF error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    JAX_ERROR = "JAX itself cannot"
    HARNESS_ERROR = "harness error"


class Verdict(enum.StrEnum):
    """Whether an outcome is as expected, given the limitations.

    A cell is stale if a limitation covers it although it is equal.
    """

    EQUAL = "equal"
    LIMITED = "limited"
    UNEXPECTED = "unexpected"
    STALE = "stale"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A harness, by name, in one mode, on one target and one device."""

    harness: str
    mode: str
    target: str
    device: str = "cpu"


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a cell.

    Attributes:
      cell: the cell.
      outcome: what happened.
      verdict: whether that is as expected.
      message: the error, or where the results differ most.
      error: the worst error, in units of the tolerance.
      seconds: how long lowering and running took.
      limitation: the reason of the limitation that covers the cell, if one does.
    """

    cell: Cell
    outcome: Outcome
    verdict: Verdict
    message: str = ""
    error: float = 0.0
    seconds: float = 0.0
    limitation: str = ""


def cells_of(
    harness: Harness,
    modes: Sequence[str] = MODES,
    targets: Sequence[str] = tuple(TARGETS),
    devices: Sequence[str] = ("cpu",),
) -> list[Cell]:
    """The cells of a harness."""
    return [
        Cell(harness.name, mode, target, device)
        for target, mode, device in itertools.product(targets, modes, devices)
    ]


def run(harness: Harness, cells: Iterable[Cell], runs: Runs | None = None) -> Iterator[Result]:
    """Runs cells of one harness.

    JAX computes the expected results once for all of them, and traces the function once per target.

    Args:
      harness: the harness.
      cells: which of its cells to run.
      runs: the cache of results of graphs; if None, these cells have one of their own.
    """
    runs = runs or RunsInMemory()
    args = harness.make_args()
    try:
        expected = _arrays(jax.jit(harness.fun)(*args))
    except Exception as error:  # Any error of JAX is an outcome.
        for cell in cells:
            yield judge(harness, cell, Outcome.JAX_ERROR, _message(error))
        return
    convert = functools.cache(
        lambda target: lowering.convert(harness.fun, target=target, with_gradient=False)
    )
    for cell in cells:
        start = time.perf_counter()
        outcome, message, worst, actual = _run_cell(
            harness, cell, convert(cell.target), args, expected, runs
        )
        seconds = time.perf_counter() - start
        yield judge(harness, cell, outcome, message, worst, seconds, (expected, actual, args))


def judge(
    harness: Harness,
    cell: Cell,
    outcome: Outcome,
    message: str = "",
    error: float = 0.0,
    seconds: float = 0.0,
    values: tuple[Any, Any, Any] | None = None,
) -> Result:
    """Judges an outcome by the limitations.

    A cell that no limitation covers must be equal; one that is covered must fail as stated.

    Args:
      harness: the harness of the cell.
      cell: the cell.
      outcome: what happened.
      message: the error, or where the results differ most.
      error: the worst error, in units of the tolerance.
      seconds: how long lowering and running took.
      values: if results are different, the expected and the actual ones, and the arguments.
    """
    limitation = find_limitation(harness, cell)
    if limitation is None:
        verdict = Verdict.EQUAL if outcome == Outcome.EQUAL else Verdict.UNEXPECTED
    elif outcome == Outcome.EQUAL:
        verdict = Verdict.STALE
    else:
        is_stated = _is_stated(limitation, outcome, message, values)
        verdict = Verdict.LIMITED if is_stated else Verdict.UNEXPECTED
    reason = "" if limitation is None else limitation.reason
    return Result(cell, outcome, verdict, message, error, seconds, reason)


def find_limitation(harness: Harness, cell: Cell) -> Limitation | None:
    """The limitation that covers a cell, or None."""
    for limitation in limitations_of(harness.primitive):
        if limitation.covers(
            case=harness.case,
            dtype=harness.dtype_name,
            params=harness.params,
            mode=cell.mode,
            target=cell.target,
            device=cell.device,
        ):
            return limitation
    return None


def _is_stated(limitation: Limitation, outcome: Outcome, message: str, values: Any) -> bool:
    """Whether a cell fails as its limitation states."""
    if outcome == Outcome.DIFFERENT:
        if limitation.looser is None or values is None:
            return False
        expected, actual, args = values
        looser = compare.LOOSER[limitation.looser]
        return compare.structure(expected, actual).equal and looser(expected, actual, args).equal
    return limitation.error is not None and bool(
        re.search(limitation.error, f"{outcome}: {message}", re.DOTALL)
    )


def _run_cell(
    harness: Harness,
    cell: Cell,
    converted: Callable[..., Any],
    args: list[Any],
    expected: list[np.ndarray],
    runs: Runs,
) -> tuple[Outcome, str, float, list[np.ndarray] | None]:
    try:
        with tf.device(f"/{cell.device}:0"):
            if cell.mode == "eager":
                actual = _numpy(converted(*map(_to_tf, args)))
            else:
                actual = _run_graph(harness, cell, converted, args, runs)
    except lowering.LoweringError as error:
        return Outcome.LOWERING_ERROR, _message(error), 0.0, None
    except Exception as error:  # Any error of TensorFlow is an outcome.
        return Outcome.TF_ERROR, _message(error), 0.0, None
    comparison = compare.structure(expected, actual)
    if comparison.equal:
        comparison = harness.comparer(expected, actual, list(map(_array, args)))
    outcome = Outcome.EQUAL if comparison.equal else Outcome.DIFFERENT
    return outcome, comparison.message, comparison.error, actual


def _run_graph(
    harness: Harness, cell: Cell, converted: Callable[..., Any], args: list[Any], runs: Runs
) -> list[np.ndarray]:
    """Runs a cell as a graph, unless the same graph has been run in the same mode."""
    tensors = [_to_tf(arg) for arg in args]
    function = tf.function(converted, autograph=False, jit_compile=cell.mode == "compiled")
    concrete = function.get_concrete_function(*tensors)
    graph_def = concrete.graph.as_graph_def()
    if cell.target == TF.name:
        _check_plain(graph_def)
    if concrete.captured_inputs:
        return _numpy(function(*tensors))
    # A graph has numbers for its callbacks, which mean the same only in graphs of one harness.
    key = key_of(graph_def, map(_array, args), harness.name, cell.mode, cell.device)
    results = runs.get(key)
    if results is None:
        results = _numpy(function(*tensors))
        runs.keep(key, results)
    return results


def _check_plain(graph_def: Any) -> None:
    """Raises an error if a graph has an op that needs XLA."""
    library = (node for function in graph_def.library.function for node in function.node_def)
    ops = {node.op for node in itertools.chain(graph_def.node, library)}
    if of_xla := sorted(op for op in ops if op.startswith("Xla")):
        raise lowering.LoweringError(f"the graph needs XLA, for {', '.join(of_xla)}")


def _numpy(results: Any) -> list[np.ndarray]:
    return [np.asarray(result.numpy()) for result in tf.nest.flatten(results)]


def _arrays(results: Any) -> list[np.ndarray]:
    return [_array(result) for result in jax.tree_util.tree_leaves(results)]


def _array(x: Any) -> np.ndarray:
    """A value of JAX as `convert` gives it: keys as their words, float0 as int32 zeros."""
    if not hasattr(x, "dtype"):
        return np.asarray(x)
    if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(x))
    if x.dtype == jax.dtypes.float0:
        return np.zeros(x.shape, np.int32)
    return np.asarray(x)


def _to_tf(x: Any) -> Any:
    """Arrays as tensors; scalars and keys as they are, for `convert` to take."""
    return tf.constant(x) if isinstance(x, np.ndarray | np.generic) else x


def _message(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-1000:]}"
