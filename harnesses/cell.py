"""Cells: a harness in one mode, on one target and one device."""

import dataclasses
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
from harnesses.devices import PLACES, reference, running_on
from harnesses.harness import Harness
from harnesses.natural import natural
from harnesses.runs import Runs, RunsInMemory, key_of
from harnesses.variants import (
    PLAIN,
    RUNTIME,
    VARIANTS,
    Trial,
    array_of,
    arrays_of,
    on_arrays,
)
from limitations import Limitation, Looser, limitations_of
from lowering import jax_compat
from lowering.boundary import models
from lowering.boundary.models import as_logical
from lowering.export import runtimes
from lowering.export.flat import flat_entry
from lowering.narrow_formats import NARROW
from lowering.ops.dtypes import LOW_PRECISION
from lowering.targets import CONSUMERS, PORTABLE, TARGETS, TF, XLA, Target
from results.outcome import Outcome, Verdict

# How TensorFlow executes a graph.
MODES = ("eager", "graph", "compiled")
ALL_MODES = (*MODES, RUNTIME)
# The targets that a sweep runs by default.
SWEPT = (TF.name, XLA.name, PORTABLE.name)
DEVICES = tuple(PLACES)
# Consumers are given what JAX computes in 32 bits. Those that have 64 bits are given harnesses that
# need these as they are.
_MADE_FOR_CONSUMERS = "32 bits"


@dataclasses.dataclass(frozen=True)
class Cell:
    """A harness, by name, in one mode, on one target and one device; or a variant of it."""

    harness: str
    mode: str
    target: str
    device: str = "cpu"
    variant: str = PLAIN


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
      ulps: the worst error of a floating-point number, in units of its last place; None if there
        are none, or if they are not unique.
    """

    cell: Cell
    outcome: Outcome
    verdict: Verdict
    message: str = ""
    error: float = 0.0
    seconds: float = 0.0
    limitation: str = ""
    ulps: float | None = None


def cells_of(
    harness: Harness,
    modes: Sequence[str] = ALL_MODES,
    targets: Sequence[str] = SWEPT,
    devices: Sequence[str] = ("cpu",),
    variant: str = PLAIN,
) -> list[Cell]:
    """The cells of a harness, or of a variant of it. The runtimes of consumers are on the CPU."""
    return [
        Cell(harness.name, mode, target, device, variant)
        for target, mode, device in itertools.product(targets, modes, devices)
        if mode in _modes(harness, target, variant) and (mode != RUNTIME or device == "cpu")
    ]


def _modes(harness: Harness, target: str, variant: str) -> Sequence[str]:
    """The modes of a variant on a target."""
    if target not in CONSUMERS:
        return [mode for mode in VARIANTS[variant].modes if mode != RUNTIME]
    if harness.is_of_64_bits and not TARGETS[target].has_64_bits:
        return ()
    if variant == PLAIN:
        return ("graph", RUNTIME)
    # What a runtime computes otherwise anyway would say nothing of a variant.
    is_limited = find_limitation(harness, Cell(harness.name, RUNTIME, target))
    return () if is_limited else [mode for mode in VARIANTS[variant].modes if mode == RUNTIME]


def run(harness: Harness, cells: Iterable[Cell], runs: Runs | None = None) -> Iterator[Result]:
    """Runs cells of one harness; see `Runner`."""
    return map(Runner(harness, runs).run, cells)


class Runner:
    """Runs cells of one harness, when they are asked for.

    For each variant, JAX computes the expected results once for all its cells, and traces the
    function once per target. Natural targets have a comparison of their own, and consumers are
    given other arguments.
    """

    def __init__(self, harness: Harness, runs: Runs | None = None):
        """Makes a runner.

        Args:
          harness: the harness.
          runs: the cache of results of graphs; if None, these cells have one of their own.
        """
        self._harness = harness
        self._runs = runs or RunsInMemory()
        self._prepared = functools.cache(self._prepare)

    def run(self, cell: Cell) -> Result:
        """Runs a cell.

        An error while its arguments are made is raised: it is the harness's own, not JAX's.
        """
        with reference():
            return self._prepared(*_kind(cell), _variant(self._harness, cell))(cell)

    def _prepare(
        self, is_natural: bool, is_consumer: bool, variant: str
    ) -> Callable[[Cell], Result]:
        """A function that runs cells with the same arguments and expected results."""
        kind = natural(self._harness, promotes=is_consumer) if is_natural else self._harness
        kind.make_args()
        try:
            trial = VARIANTS[variant].trial(kind)
        except Exception as error:  # Any error of JAX is an outcome.
            return functools.partial(_of_jax, kind, error)
        return _runner_of(kind, trial, self._runs)


def _kind(cell: Cell) -> tuple[bool, bool]:
    """Whether the target of a cell is natural, and whether it is a consumer's own."""
    return TARGETS[cell.target].is_natural, cell.target in CONSUMERS


def trial_of(harness: Harness, cell: Cell) -> Trial:
    """The program that a cell runs; raises whatever JAX raises if it cannot make it."""
    is_natural, is_consumer = _kind(cell)
    kind = natural(harness, promotes=is_consumer) if is_natural else harness
    return VARIANTS[_variant(harness, cell)].trial(kind)


def _variant(harness: Harness, cell: Cell) -> str:
    """The name of the variant of a harness that a cell runs."""
    if cell.variant != PLAIN or cell.target not in CONSUMERS:
        return cell.variant
    is_the_same = VARIANTS[_MADE_FOR_CONSUMERS].applies(harness)
    if TARGETS[cell.target].has_64_bits and (harness.is_of_64_bits or not is_the_same):
        return cell.variant
    return _MADE_FOR_CONSUMERS


def run_trial(harness: Harness, trial: Trial, cells: Iterable[Cell]) -> Iterator[Result]:
    """Runs a program in the modes and on the targets and devices of cells.

    Args:
      harness: the harness by which the results are judged.
      trial: the program.
      cells: the cells.
    """
    return map(_runner_of(harness, trial, RunsInMemory()), cells)


def _runner_of(harness: Harness, trial: Trial, runs: Runs) -> Callable[[Cell], Result]:
    """A function that runs cells of a program, for which JAX has computed the expected results."""
    try:
        with jax_compat.under(trial.settings):
            expected = _expected(trial)
            trial.trace()
    except Exception as error:  # Any error of JAX is an outcome.
        return functools.partial(_of_jax, harness, error)
    lowered = functools.cache(trial.lowered)

    def run(cell: Cell) -> Result:
        start = time.perf_counter()
        with jax_compat.under(trial.settings):
            outcome, comparison, values = _run_cell(
                harness, cell, trial, lowered(cell.target), expected, runs
            )
        seconds = time.perf_counter() - start
        message, worst = comparison.message, comparison.error
        result = judge(harness, cell, outcome, message, worst, seconds, values)
        return dataclasses.replace(result, ulps=_ulps(harness, values))

    return run


def _expected(trial: Trial) -> list[Any]:
    """What JAX computes in each run of a program."""
    fun = trial.reference or trial.fun
    # A new function, as JAX's caches do not tell all settings apart.
    reference = jax.jit(lambda *args: fun(*args))
    return [arrays_of(reference(*args)) for args in trial.runs]


def _of_jax(harness: Harness, error: Exception, cell: Cell) -> Result:
    """The result of a cell of a program that JAX cannot make or run."""
    return judge(harness, cell, Outcome.JAX_ERROR, _message(error))


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
    if outcome == Outcome.JAX_ERROR and (cell.variant != PLAIN or _kind(cell)[1]):
        verdict = Verdict.NO_VARIANT
    elif limitation is None:
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
    names = {cell.variant, PLAIN} if VARIANTS[cell.variant].is_as_plain else {cell.variant}
    for limitation, variant in itertools.product(limitations_of(harness.primitive), names):
        if limitation.covers(
            case=harness.case,
            dtype=harness.dtype_name,
            params=harness.params,
            mode=cell.mode,
            target=cell.target,
            device=cell.device,
            variant=variant,
        ):
            return limitation
    return None


def looser_of(harness: Harness, cell: Cell) -> list[Looser]:
    """The looser comparisons by which the results of a cell, which is run anew, are equal."""
    trial = trial_of(harness, cell)
    with jax_compat.under(trial.settings):
        lowered = trial.lowered(cell.target)
        _, _, values = _run_cell(harness, cell, trial, lowered, _expected(trial), RunsInMemory())
    return [looser for looser in Looser if _is_equal(looser, values)]


def _is_equal(looser: Looser | None, values: tuple[Any, Any, Any] | None) -> bool:
    """Whether expected and actual results are equal by a looser comparison."""
    if looser is None or values is None:
        return False
    expected, actual, args = values
    if not compare.structure(expected, actual).equal:
        return False
    return compare.LOOSER[looser](expected, actual, args).equal


def _is_stated(limitation: Limitation, outcome: Outcome, message: str, values: Any) -> bool:
    """Whether a cell fails as its limitation states."""
    if outcome == Outcome.DIFFERENT:
        return _is_equal(limitation.looser, values)
    return limitation.error is not None and bool(
        re.search(limitation.error, f"{outcome}: {message}", re.DOTALL)
    )


def _run_cell(
    harness: Harness,
    cell: Cell,
    trial: Trial,
    lowered: Callable[..., Any],
    expected: Sequence[list[np.ndarray]],
    runs: Runs,
) -> tuple[Outcome, compare.Comparison, tuple[Any, Any, Any] | None]:
    """Runs a cell; returns the outcome, and the comparison and values of the run that is worst."""
    given: Sequence[Any] = trial.runs
    try:
        with running_on(cell.device):
            if cell.mode == RUNTIME:
                actual = _run_runtime(cell, trial, expected[0], lowered, runs)
                expected, given = list(expected) * len(actual), list(given) * len(actual)
            elif cell.mode == "eager":
                actual = [_numpy(lowered(*map(_to_tf, args))) for args in trial.runs]
            else:
                actual = _run_graph(harness, cell, trial, lowered, runs)
    except lowering.LoweringError as error:
        return Outcome.LOWERING_ERROR, compare.Comparison(False, 0.0, _message(error)), None
    except Exception as error:  # Any error of TensorFlow is an outcome.
        return Outcome.TF_ERROR, compare.Comparison(False, 0.0, _message(error)), None
    compared = []
    for e, a, args in zip(expected, actual, given, strict=True):
        values = e, a, list(map(_canonical, args))
        comparison = compare.structure(e, a)
        compared.append((trial.comparer(*values) if comparison.equal else comparison, values))
    worst, values = min(compared, key=lambda c: (c[0].equal, -c[0].error))
    return Outcome.EQUAL if worst.equal else Outcome.DIFFERENT, worst, values


def _ulps(harness: Harness, values: tuple[Any, Any, Any] | None) -> float | None:
    """The worst error of results in units of the last place; None if they are not unique."""
    if values is None or harness.derivatives is None:
        return None
    expected, actual, _ = values
    if not compare.structure(expected, actual).equal:
        return None
    return compare.worst_ulps(expected, actual)


def _run_runtime(
    cell: Cell,
    trial: Trial,
    expected: Sequence[np.ndarray],
    lowered: Callable[..., Any],
    runs: Runs,
) -> list[list[np.ndarray]]:
    """Runs a cell by the consumer's converter and runtimes, which may have other dtypes.

    It is not run if the same graph has been.
    """
    (args,) = trial.runs
    fun, arrays = on_arrays(lowered, args)
    arrays = list(map(_canonical, arrays))
    if any(x.dtype in NARROW for x in (*arrays, *expected)):
        fun, arrays = _exported(trial, arrays, TARGETS[cell.target])
    entry = flat_entry(fun, arrays, for_consumer=True)
    graph_def = entry.concrete.graph.as_graph_def()
    key = key_of(graph_def, entry.samples, cell.target, runtimes.fingerprint())
    found = _run_once(
        runs, key, entry.concrete, lambda: list(runtimes.run(cell.target, entry).values())
    )
    dtypes = [
        e.dtype if e.dtype in NARROW else entry.dtypes[name]
        for e, name in zip(expected, entry.outputs, strict=True)
    ]
    return [[_as_logical(x, dtype) for x, dtype in zip(y, dtypes, strict=True)] for y in found]


def _exported(
    trial: Trial, arrays: Sequence[np.ndarray], target: Target
) -> tuple[Callable[..., Any], list[np.ndarray]]:
    """A program and its arguments in the dtypes that exporters give the inputs and outputs."""
    fun, _ = on_arrays(trial.fun, trial.runs[0])
    on_storage = models.on_storage(fun, [x.dtype for x in arrays], target)
    converted = trial.convert(on_storage, target=target.name)
    return converted, [x.astype(models.of_argument(x.dtype, target)) for x in arrays]


def _as_logical(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """An array of a dtype from what a consumer has in its place.

    Floats of 16 bits are rounded, as consumers keep the precision of float32.

    Raises:
      ValueError: for a number that another dtype does not have.
    """
    result = as_logical(x, dtype)
    if dtype.kind != "c" and dtype not in LOW_PRECISION:
        is_other = (result.astype(x.dtype) != x) & (x == x)
        if np.any(is_other):
            raise ValueError(f"{x[is_other][0]} is no {dtype.name}")
    return result


def _run_graph(
    harness: Harness, cell: Cell, trial: Trial, lowered: Callable[..., Any], runs: Runs
) -> list[list[np.ndarray]]:
    """Runs a cell as a graph, unless the same graph has been run in the same mode."""
    fun, _ = on_arrays(lowered, trial.runs[0])
    arrays = [on_arrays(lowered, args)[1] for args in trial.runs]
    function = tf.function(fun, autograph=False, jit_compile=cell.mode == "compiled")
    concrete = function.get_concrete_function(*map(_spec, *arrays))
    graph_def = concrete.graph.as_graph_def()
    if cell.target != XLA.name:
        _check_plain(graph_def)
    # A graph has numbers for its callbacks, which mean the same only in graphs of one harness.
    key = key_of(graph_def, itertools.chain(*arrays), harness.name, cell.mode, cell.device)
    return _run_once(
        runs, key, concrete, lambda: [_numpy(concrete(*map(tf.constant, run))) for run in arrays]
    )


def _run_once(runs: Runs, key: str, concrete: Any, run: Callable[[], Any]) -> Any:
    """What `run` gives for a function; it is not run if results are cached under the key.

    The key says nothing about captured inputs, so a function that has any always runs.
    """
    if concrete.captured_inputs:
        return run()
    results = runs.get(key)
    if results is None:
        results = run()
        runs.keep(key, results)
    return results


def _spec(*arrays: np.ndarray) -> tf.TensorSpec:
    """The specification of an argument whose values in the runs are given."""
    sizes = (set(sizes) for sizes in zip(*(x.shape for x in arrays), strict=True))
    shape = [size.pop() if len(size) == 1 else None for size in sizes]
    return tf.TensorSpec(shape, tf.as_dtype(arrays[0].dtype))


def _check_plain(graph_def: Any) -> None:
    """Raises an error if a graph has an op that needs XLA."""
    library = (node for function in graph_def.library.function for node in function.node_def)
    ops = {node.op for node in itertools.chain(graph_def.node, library)}
    if of_xla := sorted(op for op in ops if op.startswith("Xla")):
        raise lowering.LoweringError(f"the graph needs XLA, for {', '.join(of_xla)}")


def _numpy(results: Any) -> list[np.ndarray]:
    return [np.asarray(result.numpy()) for result in tf.nest.flatten(results)]


def _canonical(x: Any) -> np.ndarray:
    """An argument in the dtype that JAX takes it for."""
    array = array_of(x)
    return array.astype(jax.dtypes.canonicalize_dtype(array.dtype), copy=False)


def _to_tf(x: Any) -> Any:
    """Arrays as tensors; scalars and keys as they are, for `convert` to take."""
    return tf.constant(x) if isinstance(x, np.ndarray | np.generic) else x


def _message(error: Exception) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return text if len(text) <= 2000 else f"{text[:1000]} ... {text[-1000:]}"
