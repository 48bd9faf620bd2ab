"""Converts whole models by each converter, runs them, and compares the numbers with JAX.

    python -m tools.evaluate_models
    python -m tools.evaluate_models --size small --model cnn --converter 'tf*'

Writes g3doc/convert_models_results.json, with the results of each version of JAX,
g3doc/convert_models_results.md and g3doc/comparison.md, and the table of the README. Results that a
filter leaves out stay as they are. The same command continues an interrupted run. What converters
print goes to evaluation.jsonl.log. The exit code is 0 if this project's converters take all that
JAX can trace, 1 if not, 2 if a filter selects nothing, 130 after an interrupt.
"""

import argparse
import contextlib
import os
import pathlib
import sys
from collections.abc import Mapping, Sequence

import tensorflow as tf

from harnesses import models, recorded
from harnesses.evaluation import results
from harnesses.evaluation.converters import CONVERTERS, jax2onnx
from harnesses.evaluation.program import Case
from harnesses.evaluation.results import JAX, Evaluated, Journal, Row
from harnesses.evaluation.run import run
from harnesses.models import symbolic
from harnesses.selection import matches
from harnesses.sweep import fingerprint, versions
from tools import regenerate_docs
from tools.terminal import Progress, log_of, standard_error_to, stopped_by_signals

DOCUMENTS = ("convert_models_results.md", "comparison.md")
JOURNAL = pathlib.Path("evaluation.jsonl")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    args = _parse(argv)
    if args.jax2onnx is not None:
        os.environ[jax2onnx.PYTHON] = str(args.jax2onnx)
    cells = _select(args.model, args.size, args.converter)
    if not cells:
        print("error: the filters select nothing", file=sys.stderr)
        return 2
    tf.get_logger().setLevel("ERROR")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    ran = versions()
    journal = Journal(args.journal, ran, fingerprint(), args.fresh)
    with contextlib.ExitStack() as stack:
        stop = stack.enter_context(stopped_by_signals())
        terminal = stack.enter_context(standard_error_to(log_of(args.journal)))
        progress = stack.enter_context(contextlib.closing(Progress(terminal, "evaluation")))
        done = {(row.case, row.converter) for row in journal.rows}
        progress.start(
            sum(1 + len(names) for names in cells.values()), _count_done(cells, journal.rows)
        )
        left = {
            case: [name for name in names if (case, name) not in done]
            for case, names in cells.items()
            if not _is_done(case, names, journal.rows)
        }
        for row in run(left, workers=args.workers, timeout=args.timeout, stop=stop):
            if (row.case, row.converter) not in done:
                journal.add(row)
                progress.add(1 if row.ok or row.converter != JAX else 1 + len(cells[row.case]))
        complete = not stop.is_set()
    _write(ran.jax, Evaluated(ran, {}), journal.rows)
    bad = [row for row in journal.rows if is_bad(row)]
    for row in bad:
        shape = ", ".join(row.case.symbolic) or "static"
        print(f"{row.case.model} ({row.case.size}, {shape}), {row.converter}: {row.message}")
    print(f"{sum(row.ok for row in journal.rows)} of {len(journal.rows)} cells are YES")
    if not complete:
        print("interrupted; run it again to go on")
        return 130
    journal.end()
    return 1 if bad else 0


def _select(
    names: Sequence[str], sizes: Sequence[str], converters: Sequence[str]
) -> Mapping[Case, Sequence[str]]:
    """The converters to run for each case; those that are missing are named."""
    chosen = []
    for name, converter in CONVERTERS.items():
        if matches(name, converters):
            if reason := converter.missing():
                print(f"without {name}: {reason}")
            else:
                chosen.append(name)
    return {
        Case(size, name, choice): chosen
        for size in sizes
        for name in models.NAMES
        if matches(name, names) and chosen
        for choice in symbolic.choices(models.load(name, size))
    }


def _is_done(case: Case, names: Sequence[str], rows: Sequence[Row]) -> bool:
    """Whether all of a case has been run, or JAX cannot trace it."""
    of_case = {row.converter: row for row in rows if row.case == case}
    return JAX in of_case and (not of_case[JAX].ok or set(names) <= set(of_case))


def _count_done(cells: Mapping[Case, Sequence[str]], rows: Sequence[Row]) -> int:
    """How many cells need not be run again."""
    traced = {row.case for row in rows if row.converter == JAX and row.ok}
    return sum(
        1 + len(names)
        if case not in traced and _is_done(case, names, rows)
        else sum(row.case == case and row.converter in (JAX, *names) for row in rows)
        for case, names in cells.items()
    )


def is_bad(row: Row) -> bool:
    """Whether this project's converter fails, not JAX, a runtime, or what it is compared with."""
    if row.ok or row.converter == JAX:
        return False
    return not row.lacks and not CONVERTERS[row.converter].compared


def _write(version: str, empty: Evaluated, rows: Sequence[Row]) -> None:
    """Adds rows to the results of a version of JAX, and writes the document."""
    evaluated = results.read(regenerate_docs.MODELS)
    before = evaluated.get(version, empty)
    updated = Evaluated(empty.versions, before.rows).updated(rows)
    results.write(regenerate_docs.MODELS, {**evaluated, version: updated})
    documents = regenerate_docs.render(recorded.read(regenerate_docs.RECORDED))
    for name in DOCUMENTS:
        (regenerate_docs.G3DOC / name).write_text(documents[name])
    regenerate_docs.README.write_text(regenerate_docs.readme())


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tools.evaluate_models",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    filters = {"model": models.NAMES, "converter": CONVERTERS}
    for name, values in filters.items():
        parser.add_argument(
            f"--{name}",
            nargs="+",
            metavar="PATTERN",
            default=["*"],
            help=f"of {', '.join(values)}, or patterns with * and ?",
        )
    parser.add_argument("--size", nargs="+", choices=models.SIZES, default=models.SIZES)
    parser.add_argument(
        "--jax2onnx",
        type=pathlib.Path,
        metavar="PYTHON",
        help="the Python of an environment with jax2onnx and what the models need, if this "
        "environment has not",
    )
    parser.add_argument(
        "--workers", type=int, default=2, metavar="N", help="number of processes; %(default)s"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=900,
        metavar="SECONDS",
        help="time after which a cell counts as hung; %(default)s by default",
    )
    parser.add_argument(
        "--journal",
        type=pathlib.Path,
        default=JOURNAL,
        metavar="FILE",
        help="where the results of an unfinished run are kept; %(default)s by default",
    )
    parser.add_argument("--fresh", action="store_true", help="do not continue an interrupted run")
    args = parser.parse_args(argv)
    if args.workers < 1:
        parser.error("--workers takes a positive number")
    return args


if __name__ == "__main__":
    sys.exit(main())
