"""Reduces a cell that is not equal to JAX, and prints a script that shows how it fails.

It is what `python -m tools.sweep --bisect HARNESS` runs.
"""

import difflib
import itertools
import sys
import textwrap
import threading
from collections.abc import Sequence

import jax
import pebble

from harnesses import reproducer, sweep
from harnesses.cell import ALL_MODES, SWEPT, Cell, Outcome, Result, Verdict
from harnesses.engines import Catalogue, EngineError, Job, local
from harnesses.harness import Harness
from harnesses.reduction import Reduced, ReductionError, Runner, reduce
from harnesses.reproducer import NotWritableError
from harnesses.selection import Selection, SelectionError
from harnesses.variants import PLAIN, Trial

# The outcomes of programs that are not to be run in this process.
_FATAL = (Outcome.CRASH, Outcome.TIMEOUT)


def bisect(
    catalogue: Catalogue,
    name: str,
    modes: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
    devices: Sequence[str] | None = None,
    variants: Sequence[str] | None = None,
    timeout: float = 300,
) -> int:
    """Finds a cell of a harness that is not equal, reduces it, and prints the script.

    Args:
      catalogue: returns the harnesses by name; a function of a module, as workers import it.
      name: the name of the harness.
      modes: the modes to look in, or patterns; all by default.
      targets: the targets; those that are swept by default.
      devices: the devices; the CPU by default.
      variants: the variants; the harness as it is by default.
      timeout: seconds after which a cell counts as hung.

    Returns:
      The exit code: 0 if a script has been printed, 2 if there is none.
    """
    selection = Selection(
        modes=modes or ALL_MODES,
        targets=targets or tuple(SWEPT),
        devices=devices or ("cpu",),
        variants=variants or (PLAIN,),
        share="all",
        per_harness="all",
    )
    try:
        with jax.enable_x64(True):
            harness = _named(catalogue, name)
            cells = selection.cells({name: harness})[name]
            failed = _first_failure(catalogue, harness, cells, timeout)
            isolated = in_other_processes(failed.cell, timeout)
            is_fatal = failed.outcome in _FATAL
            reduced = reduce(harness, failed.cell, isolated if is_fatal else None)
            about = _about(reduced)
            try:
                text = reproducer.script(reduced.cell, reduced.trial, about)
            except NotWritableError as error:
                print(_in_words(reduced, about, error), file=sys.stderr)
                return 2
            if not is_fatal and not _shows(text, reduced.result):
                print("the script does not show it: the harness is stricter", file=sys.stderr)
    except (SelectionError, EngineError, ReductionError, NotWritableError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(text, end="")
    return 0


def _named(catalogue: Catalogue, name: str) -> Harness:
    harnesses = catalogue()
    if name not in harnesses:
        similar = difflib.get_close_matches(name, harnesses)
        hint = f"; did you mean {' or '.join(similar)}?" if similar else ""
        raise SelectionError(f"there is no harness {name!r}{hint}")
    return harnesses[name]


def _first_failure(
    catalogue: Catalogue, harness: Harness, cells: Sequence[Cell], timeout: float
) -> Result:
    """The first result that is not equal; of a cell that no limitation covers, if there is one."""
    job = Job(catalogue, {harness.name: harness}, None, len, timeout, threading.Event())
    tasks = [list(task) for _, task in itertools.groupby(cells, key=lambda c: c.variant)]
    batches = local.LocalEngine(1).run(tasks, job)
    results = {result.cell: result for batch in batches for result in batch}
    failed = [
        results[c]
        for c in cells
        if results[c].outcome not in (Outcome.EQUAL, Outcome.JAX_ERROR, Outcome.HARNESS_ERROR)
    ]
    if not failed:
        where = ", ".join(sorted({f"{c.mode} on {c.target}" for c in cells})) or "no mode"
        kinds = ", ".join(sorted({str(result.outcome) for result in results.values()}))
        raise ReductionError(f"{harness.name} does not fail in any cell ({where}): {kinds}")
    return min(failed, key=lambda result: result.verdict == Verdict.LIMITED)


def in_other_processes(cell: Cell, timeout: float) -> Runner:
    """A function that runs programs which may crash or hang, each in a process of its own."""

    def run(trial: Trial) -> Result:
        text = reproducer.script(cell, trial, "")
        with pebble.ProcessPool(1, context=local.processes()) as pool:
            return _outcome(cell, pool, text, timeout)

    return run


def _outcome(cell: Cell, pool: pebble.ProcessPool, text: str, timeout: float) -> Result:
    """What becomes of a process that runs a script."""
    message = ""
    try:
        outcome = pool.schedule(reproducer.run, (text,), timeout=timeout).result()
    except TimeoutError:
        outcome = Outcome.TIMEOUT
    except pebble.ProcessExpired as error:
        outcome, message = Outcome.CRASH, f"the process died (exit code {error.exitcode})"
    return Result(cell, outcome, Verdict.UNEXPECTED, message)


def _shows(text: str, result: Result) -> bool:
    """Whether a script fails as the cell does."""
    is_error = result.outcome != Outcome.DIFFERENT
    return reproducer.run(text) == (Outcome.TF_ERROR if is_error else Outcome.DIFFERENT)


def _about(reduced: Reduced) -> str:
    """The comment at the beginning of a script."""
    cell, result = reduced.cell, reduced.result
    variant = "" if cell.variant == PLAIN else f" ({cell.variant})"
    message = result.message.partition("\n")[0][:400]
    place = f"{cell.harness}{variant}, {cell.mode} on {cell.target}"
    what = textwrap.fill(f"{place}: {result.outcome}: {message}", 96)
    return f"{what}\n\n{sweep.versions()}, after {reduced.tries} tries.\n"


def _in_words(reduced: Reduced, about: str, error: NotWritableError) -> str:
    """The text that is printed of a program that cannot be written as a script."""
    args = "\n".join(map(repr, reduced.trial.runs[0]))
    program = jax.make_jaxpr(reduced.trial.fun)(*reduced.trial.runs[0])
    return f"{about}\n{program}\n\n{args}\n\nerror: there can be no script of this: {error}"
