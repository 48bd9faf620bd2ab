"""Runs cells of the harnesses, judges them by the limitations, and records every result.

    python -m tools.sweep
    python -m tools.sweep --primitive 'reduce_*' --primitive sort --dtype bfloat16 --mode compiled

The same command continues an interrupted sweep. The exit code is 0 if every cell is equal to JAX or
fails as a limitation states; 1 if a cell does not, or passes unexpectedly; 2 if a filter
selects nothing, the database cannot be used, another process is at the same sweep, or no worker
starts; 130 after an interrupt. TensorFlow, XLA and workers that crash print to a file beside the
database, such as sweep.sqlite.log.

    python -m tools.sweep --shard 1/3 --database shard1.sqlite

runs a third of the cells; tools/merge_results.py joins the files of all three.

    python -m tools.sweep --bisect cholesky_inf_float32 --mode compiled > reproducer.py

writes a script that shows how a harness fails, reduced to the smallest program and arguments.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import sys
from collections.abc import Sequence

from tools.terminal import (
    Progress,
    failed,
    importing,
    log_of,
    run,
    say,
    standard_error_to,
    stopped_by_signals,
)

if __name__ == "__main__":
    # What follows takes many seconds.
    importing("JAX and TensorFlow")

import jax

from harnesses.cell import ALL_MODES, DEVICES, SWEPT, Verdict
from harnesses.database import Row
from harnesses.engines import EngineError
from harnesses.engines.ray import RayEngine
from harnesses.engines.worker import cores
from harnesses.harness import all_harnesses
from harnesses.selection import CONSUMER_DTYPES, CORE_DTYPES, Selection, SelectionError
from harnesses.shards import Shard
from harnesses.sweep import Catalogue, Report, sweep
from harnesses.times import Times
from harnesses.turn import TURN
from harnesses.variants import VARIANTS
from lowering.targets import CONSUMERS, TARGETS
from results import files, outcome
from tools import bisect, failures, update_limitations

DATABASE = pathlib.Path("sweep.sqlite")

# The longest time that a cell may take, in seconds: a day.
_LONGEST = 86_400
# How long each primitive takes in a sample, in seconds of one core; so long again for its variants
# and for the runtimes.
SECONDS = 0.5


def main(argv: Sequence[str] | None = None, catalogue: Catalogue = all_harnesses) -> int:
    """Runs the command line; returns the exit code."""
    args = _parse(argv)
    if args.watch is not None:
        # A process that has imported none of the sources, so that it can import them again.
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, "-m", "tools.watch", args.watch])
    if args.bisect is not None:
        filters = args.mode, args.target, args.device, args.variant
        return bisect.bisect(catalogue, args.bisect, *filters, timeout=args.timeout)
    # Without filters, a sweep is a sample that a person can wait for.
    is_sample = not (args.per_harness or args.full or any(_filters(args)))
    selection = Selection(
        primitives=args.primitive or ("*",),
        dtypes=args.dtype or ("*",),
        modes=args.mode or ALL_MODES,
        targets=args.target or tuple(SWEPT),
        devices=args.device or ("cpu",),
        variants=args.variant or ("*",),
        share=args.variants,
        per_harness=args.per_harness or ("one" if is_sample else "all"),
        with_consumers=args.per_harness != "all" and not args.full and not any(_filters(args)),
        seconds=args.seconds or (SECONDS if is_sample else None),
        whole=args.whole or (),
    )
    if args.consumers:
        selection = Selection.of_consumers(
            args.dtype or CONSUMER_DTYPES, selection.primitives, args.target or CONSUMERS
        )
    with contextlib.ExitStack() as stack:
        stack.enter_context(jax.enable_x64(True))
        stop = stack.enter_context(stopped_by_signals())
        try:
            files.check(args.database)
            times = Times.recorded(args.times) if args.times else None
            if args.runs is not None:
                args.runs.mkdir(parents=True, exist_ok=True)
            terminal = stack.enter_context(standard_error_to(log_of(args.database), keep=True))
        except files.DatabaseError as error:
            return failed(error)
        except OSError as error:
            return failed(f"{error.filename} cannot be written: {error.strerror}")
        # A diff is to be all that goes to standard output.
        stack.enter_context(
            contextlib.redirect_stdout(terminal if args.update_limitations else sys.stdout)
        )
        workers = args.workers or cores()
        progress = stack.enter_context(contextlib.closing(Progress(terminal, "sweep", workers)))

        def start(total: int, done: int, seconds: float) -> None:
            # Only now is it known that the log is not that of another process.
            os.ftruncate(2, 0)
            of_workers = f"{workers} {'worker' if workers == 1 else 'workers'}"
            say(f"starting {of_workers if args.ray is None else 'Ray'}", terminal)
            progress.start(total, done, seconds)

        say("making harnesses", terminal)
        try:
            report = sweep(
                selection,
                args.database,
                catalogue=catalogue,
                engine=RayEngine(args.ray or None, args.workers) if args.ray is not None else None,
                workers=args.workers,
                timeout=args.timeout,
                fresh=args.fresh,
                runs=args.runs,
                shard=args.shard,
                times=times,
                turn=args.turn,
                stop=stop,
                on_start=start,
                on_results=lambda rows, seconds: progress.add(len(rows), seconds),
            )
        except (SelectionError, EngineError, files.DatabaseError) as error:
            progress.close()
            return failed(error, terminal)
    # A diff is to be all that goes to standard output.
    with contextlib.redirect_stdout(sys.stderr if args.update_limitations else sys.stdout):
        print_report(report, args.verbose)
    if args.update_limitations:
        try:
            update_limitations.print_diff(report.rows, catalogue())
        except ValueError as error:
            return failed(error)
    if not report.complete:
        done = f"{progress.done} of {progress.total} cells"
        output = sys.stderr if args.update_limitations else sys.stdout
        print(f"interrupted after {done}; run it again to go on", file=output)
        return 130
    return 0 if report.is_green else 1


def _filters(args: argparse.Namespace) -> Sequence[Sequence[str] | None]:
    """What the command selects."""
    return args.primitive, args.dtype, args.mode, args.target, args.device, args.variant


def print_report(report: Report, verbose: bool) -> None:
    """Prints the results by primitive, the cells that are not as expected by cause, and the counts.

    Args:
      report: the results of a sweep.
      verbose: whether to print primitives of which all cells are equal, too.
    """
    by_primitive = collections.defaultdict(list)
    for row in report.rows:
        by_primitive[row.primitive].append(row)
    lines = [_line(primitive, rows) for primitive, rows in sorted(by_primitive.items())]
    shown = [line for line in lines if verbose or line[1] != line[2]]
    if shown:
        titles = ("primitive", "cells", "equal", "xfail", "fail", "xpass", "worst", "time")
        for line in (titles, *shown):
            print("{:32}{:>8}{:>8}{:>8}{:>8}{:>8}{:>10}{:>9}".format(*line))
        print()

    print(*(f"{line}\n" for line in failures.lines(report.rows)), sep="", end="")
    for primitive, limitation in report.unused:
        print(f"no cell of {primitive} is under the limitation {limitation.reason!r}")

    missing = report.count(Verdict.NO_VARIANT)
    if report.variants or missing:
        print(
            f"{report.variants} of the cells are of variants; JAX itself cannot map, differentiate "
            f"or trace {missing} more"
        )
    counts: dict[str, int] = {verdict: report.count(verdict) for verdict in Verdict}
    counts[Verdict.STALE] = report.stale
    print(f"{len(report.rows) - missing} cells: {outcome.summary(counts)}")


def _line(primitive: str, rows: Sequence[Row]) -> tuple[str | int, ...]:
    rows = [row for row in rows if row.verdict != Verdict.NO_VARIANT]
    counts = collections.Counter(row.verdict for row in rows)
    worst = max((row.error for row in rows if row.verdict == Verdict.EQUAL), default=0.0)
    seconds = sum(row.seconds for row in rows)
    verdicts = [counts[verdict] for verdict in Verdict if verdict != Verdict.NO_VARIANT]
    return (primitive, len(rows), *verdicts, f"{worst:.2g}", f"{seconds:.1f} s")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    description, _, epilog = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        prog="python -m tools.sweep",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    filters = {
        "primitive": "name of a JAX primitive",
        "dtype": "name of a dtype",
        "mode": f"of {', '.join(ALL_MODES)}",
        "target": f"of {', '.join(TARGETS)}; {', '.join(SWEPT)} by default",
        "device": f"of {', '.join(DEVICES)}; cpu by default",
        "variant": f"of {', '.join(VARIANTS)}",
    }
    for name, what in filters.items():
        parser.add_argument(
            f"--{name}",
            action="append",
            metavar="PATTERN",
            help=f"{what}, or a pattern with * and ?; may be repeated",
        )
    parser.add_argument(
        "--variants",
        choices=("part", "all", "none"),
        default="part",
        help="which variants of harnesses to run beside the harnesses as they are; by default a "
        "part that has each primitive, dtype and kind of variant, and differs from run to run",
    )
    parser.add_argument(
        "--per-harness",
        choices=("one", "all", "half"),
        help="in which of the selected modes and targets each harness is run: in one of them, in "
        "all, or half of the harnesses in one; by default in all if something is selected. Which "
        "it is differs from run to run; cells of limitations are always run",
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="run all harnesses in all modes on all targets instead of a sample; --per-harness all",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="run so many cells of each primitive as take about S seconds on one core, as many "
        "variants and as many cells of runtimes, at least one of each; by default "
        f"{SECONDS:g} if nothing is selected, which takes some minutes on two cores. Which they "
        "are differs from run to run",
    )
    parser.add_argument(
        "--whole",
        action="append",
        metavar="PATTERN",
        help="beside the sample, run all harnesses of these primitives in all modes on all "
        "targets; may be repeated",
    )
    parser.add_argument(
        "--turn",
        default=TURN,
        metavar="TEXT",
        help="another text takes another part of what is run by turns",
    )
    parser.add_argument(
        "--consumers",
        action="store_true",
        help="run all harnesses in LiteRT, ONNX Runtime and TF.js, or those of the given "
        "primitives, dtypes and targets, and nothing else; those of 64 bits run in ONNX Runtime "
        f"alone; without filters, a sweep runs half of those of {', '.join(CORE_DTYPES)}, each in "
        "one of these runtimes",
    )
    parser.add_argument(
        "--workers",
        type=int,
        metavar="N",
        help="number of processes, or of workers of the cluster; one per core by default",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300,
        metavar="SECONDS",
        help="time after which a harness, and then each of its cells, counts as hung; "
        "%(default)s by default",
    )
    parser.add_argument(
        "--database",
        type=pathlib.Path,
        default=DATABASE,
        metavar="FILE",
        help="where results are recorded; %(default)s by default",
    )
    parser.add_argument(
        "--runs",
        type=pathlib.Path,
        metavar="DIRECTORY",
        help="where results of graphs are cached, so that sweeps with other versions of JAX do not "
        "run the same graphs on the same arguments again; only for one machine",
    )
    parser.add_argument(
        "--ray",
        nargs="?",
        const="",
        metavar="ADDRESS",
        help="run the cells on the Ray cluster at this address, such as ray://host:10001 or auto; "
        "without an address, on a cluster that is started on this machine",
    )
    parser.add_argument(
        "--shard",
        type=_shard,
        metavar="I/N",
        help="run only the Ith of N parts that take about as long as each other",
    )
    parser.add_argument(
        "--times",
        type=pathlib.Path,
        metavar="FILE",
        help="results of an earlier sweep, by whose times the parts of --shard are balanced, and "
        "long cells are run first; the same for all parts; g3doc/times.json by default",
    )
    parser.add_argument(
        "--watch",
        metavar="PRIMITIVE",
        help="run all plain cells of this primitive whenever a source changes, and record nothing; "
        "no other option holds",
    )
    parser.add_argument(
        "--bisect",
        metavar="HARNESS",
        help="reduce the first cell of this harness that is not equal, in the modes, targets, "
        "devices and variants selected, and print a script that shows how it fails",
    )
    parser.add_argument(
        "--update-limitations",
        action="store_true",
        help="print a diff of limitations after which all cells are as expected: with one for each "
        "unexpected failure, and narrower ones where there are unexpected passes",
    )
    parser.add_argument("--fresh", action="store_true", help="do not continue an interrupted sweep")
    parser.add_argument("--verbose", action="store_true", help="show every primitive at the end")
    args = parser.parse_args(argv)
    if args.workers is not None and args.workers < 1:
        parser.error("--workers takes a positive number")
    if not 0 < args.timeout <= _LONGEST:
        parser.error(f"--timeout takes a positive number of seconds, up to {_LONGEST:,}")
    if args.seconds is not None and not 0 < args.seconds <= _LONGEST:
        parser.error("--seconds takes a positive number")
    if args.full and (args.per_harness or args.seconds or args.consumers):
        parser.error("--full runs everything; --per-harness, --seconds and --consumers do not")
    if args.consumers and (args.mode or args.variant or args.device):
        parser.error("--consumers runs plain harnesses in the mode runtime on the cpu alone")
    return args


def _shard(text: str) -> Shard:
    try:
        return Shard.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    run(main)
