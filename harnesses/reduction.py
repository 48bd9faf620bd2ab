"""Reduces a failing cell to a smaller program on smaller arguments that fails in the same way.

What is left out is found by delta debugging (Zeller and Hildebrandt, "Simplifying and Isolating
Failure-Inducing Input", 2002): equations of the program, and positions along the axes of its
arguments. Only what JAX itself can still run counts.
"""

import dataclasses
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import jax
import jax.extend.core as jex_core
import numpy as np

from harnesses import cell as cells
from harnesses.cell import Cell, Outcome, Result
from harnesses.harness import Harness
from harnesses.variants import Trial, is_array
from lowering import jax_compat
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import used

# Differences of fewer units in the last place than this may be those of rounding.
_ROUNDING = 64.0
# More elements than this are not made simpler one by one.
_FEW = 16

# How many programs are tried. A small one takes a tenth of a second.
LIMIT = 400

Item = TypeVar("Item")


class ReductionError(ValueError):
    """A cell cannot be reduced, for the reason that the message gives."""


@dataclasses.dataclass(frozen=True)
class Reduced:
    """A program that fails.

    Attributes:
      cell: the mode, target and device in which it fails.
      trial: the program and its arguments.
      result: how it fails.
      tries: how many programs were run to find it.
    """

    cell: Cell
    trial: Trial
    result: Result
    tries: int


# How a program fares in the place of that of a cell; None if its results cannot be compared.
Runner = Callable[[Trial], Result | None]


def in_this_process(harness: Harness, cell: Cell) -> Runner:
    """A function that runs programs in this process, for programs that do not crash."""

    def run(trial: Trial) -> Result | None:
        try:
            (result,) = cells.run_trial(harness, trial, [cell])
        except Exception:  # A comparer may need arguments as the harness has them.
            return None
        return result

    return run


def reduce(harness: Harness, cell: Cell, run: Runner | None = None, limit: int = LIMIT) -> Reduced:
    """Reduces a cell that is not equal to JAX, whether or not a limitation covers it.

    Args:
      harness: the harness of the cell.
      cell: the cell.
      run: what runs programs in the place of that of the cell; by default `in_this_process`.
      limit: how many programs to try at most.

    Raises:
      ReductionError: if the cell is equal, JAX itself cannot run it, or it is one of derivatives
        that TensorFlow computes.
    """
    if cell.variant == "gradient":
        raise ReductionError(
            "TensorFlow's gradient is no program of JAX that could be made smaller; the variants "
            "jvp and vjp of the harness are"
        )
    try:
        trial = cells.trial_of(harness, cell)
    except Exception as error:  # JAX's, or the harness's own.
        raise ReductionError(f"JAX itself cannot make {_name(cell)}: {error}") from error
    search = _Search(cell, trial, run or in_this_process(harness, cell), limit)
    search.reduce()
    return Reduced(cell, search.trial, search.result, search.tries)


def smallest(items: Sequence[Item], fails: Callable[[list[Item]], bool]) -> list[Item]:
    """A subset of items that fails, of which no item can be left out.

    Args:
      items: at least one item; all of them together fail.
      fails: whether a subset, which is never empty, fails.
    """
    kept, parts = list(items), 2
    while len(kept) > 1:
        parts = min(parts, len(kept))
        bounds = [len(kept) * i // parts for i in range(parts + 1)]
        spans = list(itertools.pairwise(bounds))
        subsets = [kept[begin:end] for begin, end in spans]
        rests = [kept[:begin] + kept[end:] for begin, end in spans] if parts > 2 else []
        if (found := next(filter(fails, subsets), None)) is not None:
            kept, parts = found, 2
        elif (found := next(filter(fails, rests), None)) is not None:
            kept, parts = found, max(parts - 1, 2)
        elif parts == len(kept):
            break
        else:
            parts *= 2
    return kept


class _Search:
    """The smallest program that has been found to fail so far."""

    def __init__(self, cell: Cell, trial: Trial, run: Runner, limit: int):
        self._run, self._limit = run, limit
        self.tries = 1
        found = run(trial)
        if found is None or found.outcome == Outcome.JAX_ERROR:
            what = found.message if found else "its results cannot be compared"
            raise ReductionError(f"JAX itself cannot run {_name(cell)}: {what}")
        if found.outcome == Outcome.EQUAL:
            raise ReductionError(f"{_name(cell)} is equal to JAX, so there is nothing to reduce")
        self.trial, self.result = trial, found

    def reduce(self) -> None:
        """Makes the program and its arguments as small as possible."""
        if len(self.trial.runs) > 1 or self.trial.shapes is not None:
            self._leave_symbolic_shapes_out()
        if self.trial.whatever_shapes is not None:
            self._fails(comparer=self.trial.whatever_shapes)
        self._shorten_axes()
        if self.trial.shapes is None and len(self.trial.runs) == 1:
            self._leave_equations_out()
            self._shorten_axes()
        self._simplify_values()

    def _fails(self, **changes: Any) -> bool:
        """Whether a changed program fails likewise; if so, it takes the place of the program."""
        if self.tries >= self._limit:
            return False
        self.tries += 1
        trial = dataclasses.replace(self.trial, **changes)
        found = self._run(trial)
        if found is None or not _is_alike(found, self.result):
            return False
        self.trial, self.result = trial, found
        return True

    def _leave_symbolic_shapes_out(self) -> None:
        """Takes a single run, and static shapes, if it fails likewise."""
        runs = self.trial.runs
        if any(self._fails(runs=[run], shapes=None) for run in runs):
            return
        any(self._fails(runs=[run]) for run in runs)

    def _shorten_axes(self) -> None:
        """Takes as few positions along each axis as possible.

        Axes of one size may have to stay so, as those that a product sums over: they are first
        shortened together.
        """
        for axes in self._axes():
            first = self.trial.runs[0]
            size = first[axes[0][0]].shape[axes[0][1]]
            if size > 1 and all(first[i].shape[axis] == size for i, axis in axes):
                self._shorten(axes, size)

    def _shorten(self, axes: Sequence[tuple[int, int]], size: int) -> None:
        """Takes as few positions as possible along axes of one size: arguments, and their axes."""
        whole = self.trial.runs

        def fails(kept: list[int]) -> bool:
            runs = [list(run) for run in whole]
            for run in runs:
                for i, axis in axes:
                    inside = [k for k in kept if k < run[i].shape[axis]]
                    run[i] = np.take(run[i], inside, axis)
            return self._fails(runs=runs)

        smallest(range(size), fails)

    def _axes(self) -> Iterator[Sequence[tuple[int, int]]]:
        """The axes of arguments by size, those of a size together, and then each alone."""
        by_size: dict[int, list[tuple[int, int]]] = {}
        for i, arg in enumerate(self.trial.runs[0]):
            for axis, size in enumerate(arg.shape if is_array(arg) else ()):
                by_size.setdefault(size, []).append((i, axis))
        yield from by_size.values()
        for axes in by_size.values():
            yield from ([axis] for axis in axes if len(axes) > 1)

    def _leave_equations_out(self) -> None:
        """Takes as few equations as possible, on what JAX computes for them."""
        (args,) = self.trial.runs
        with jax_compat.under(self.trial.settings):
            try:
                traced = jax.make_jaxpr(self.trial.fun)(*args)
                programs = [inline_calls(traced, frozenset()), traced]
                values = [_values(program, args) for program in programs]
            except Exception:  # Such as references, which are no values.
                return
        for program, of_program in zip(programs, values, strict=True):

            def fails(kept: list[int], program=program, of_program=of_program) -> bool:
                fun, inputs = _part(program, kept)
                if not inputs:
                    return False
                return self._fails(fun=fun, reference=None, runs=[[of_program[v] for v in inputs]])

            every = list(range(len(program.eqns)))
            if every and fails(every):
                smallest(every, fails)
                return

    def _simplify_values(self) -> None:
        """Puts zeros, ones and integers in place of what need not be anything else."""
        for i, arg in enumerate(self.trial.runs[0]):
            if not is_array(arg):
                continue
            if any(self._fails(runs=self._with(i, simple)) for simple in _simple(arg)):
                continue
            for at in np.ndindex(arg.shape) if arg.size <= _FEW else ():
                now = self.trial.runs[0][i]
                for simple in _simple(now[at]):
                    changed = np.array(now)
                    changed[at] = simple
                    if _bits(changed) == _bits(now) or self._fails(runs=self._with(i, changed)):
                        break

    def _with(self, i: int, value: np.ndarray) -> Sequence[Sequence[Any]]:
        """The runs with another argument in each run in which it has that shape."""
        return [
            [value if k == i and arg.shape == value.shape else arg for k, arg in enumerate(run)]
            for run in self.trial.runs
        ]


def _simple(x: Any) -> Iterator[np.ndarray]:
    """Arrays like another one with simpler elements, the simplest first."""
    x = np.asarray(x)
    yield np.zeros_like(x)
    yield np.ones_like(x)
    if x.dtype.kind == "f":
        with np.errstate(all="ignore"):
            yield np.rint(x)


def _bits(x: np.ndarray) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def _values(program: jex_core.ClosedJaxpr, args: Sequence[Any]) -> dict[jex_core.Var, Any]:
    """What JAX computes for the variables of a program; PRNG keys stay keys."""
    read = used(program.eqns)
    results = [v for eqn in program.eqns for v in eqn.outvars if v in read]
    every = jax_compat.with_equations(program, program.invars, results, program.eqns)
    known = dict(zip(program.invars, args, strict=True))
    known |= dict(zip(program.constvars, program.consts, strict=True))
    known |= dict(zip(results, jax.jit(jex_core.jaxpr_as_fun(every))(*args), strict=True))
    return {v: _as_argument(x) for v, x in known.items()}


def _as_argument(x: Any) -> Any:
    """A value as arguments of harnesses are: an array of NumPy, or a key."""
    return x if jax.dtypes.issubdtype(x.dtype, jax.dtypes.extended) else np.asarray(x)


def _part(
    program: jex_core.ClosedJaxpr, kept: Sequence[int]
) -> tuple[Callable[..., Any], list[jex_core.Var]]:
    """Some equations of a program as a function, and the variables that are its arguments.

    The function returns the results of the program that it computes, and each other value that none
    of its equations uses.
    """
    eqns = [program.eqns[i] for i in kept]
    made = [v for eqn in eqns for v in eqn.outvars]
    read = used(eqns)
    inputs = list(
        dict.fromkeys(
            v
            for eqn in eqns
            for v in eqn.invars
            if not isinstance(v, jex_core.Literal) and v not in made
        )
    )
    # Results that are dropped are variables of another type.
    results = [
        v for v in made if type(v) is jex_core.Var and (v in program.outvars or v not in read)
    ]
    return jex_core.jaxpr_as_fun(jax_compat.closed([], [], inputs, results, eqns)), inputs


def _is_alike(found: Result, first: Result) -> bool:
    """Whether a program fails as another one does."""
    return found.outcome == first.outcome and (
        _pattern(found.message) == _pattern(first.message)
        and (_is_gross(found) or not _is_gross(first))
    )


def _is_gross(result: Result) -> bool:
    """Whether results differ by more than rounding; they do if their error is no number."""
    return result.ulps is None or not result.ulps < _ROUNDING


def _pattern(message: str) -> str:
    """The beginning of a message without what names places, sizes, dtypes and finite numbers.

    Infinities and NaN stay: a program that gives a number for NaN fails otherwise than one that
    gives NaN for a number.
    """
    line = message.partition("\n")[0]
    line = re.sub(r"result \d+ at \[.*?\]", "result", line)
    line = re.sub(r"np\.\w+\((.*?)\)", r"\1", line)
    line = re.sub(r"\S*(/|\[|').*?(\s|$)", "", line)
    return re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", line)[:80]


def _name(cell: Cell) -> str:
    variant = "" if cell.variant == "plain" else f" ({cell.variant})"
    return f"{cell.harness}{variant}, {cell.mode} on {cell.target},"
