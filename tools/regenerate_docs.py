"""Generates the documents in g3doc/ from harnesses, limitations and the evidence of sweeps.

    python -m tools.regenerate_docs
    python -m tools.regenerate_docs --database sweep.sqlite
    python -m tools.regenerate_docs --check

With --database, a complete green sweep with the installed version of JAX replaces the evidence of
that version in g3doc/evidence.json: the default sweep, or that with --per-harness all. The times of
its cells go to g3doc/times.json. With --check
nothing is written; the exit code is 1 if the documents are out of date, or if harnesses or
limitations have changed since the sweep.
"""

import argparse
import collections
import contextlib
import json
import pathlib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jinja2

from harnesses import arguments, evidence, times
from harnesses.cell import Outcome, Verdict
from harnesses.database import Database, DatabaseError, Row
from harnesses.evaluation import results
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.table import tables
from harnesses.evidence import Evidence
from harnesses.harness import all_harnesses
from harnesses.selection import CONSUMER_DTYPES, CORE_DTYPES, OTHER_DTYPES, Selection
from harnesses.sweep import versions
from harnesses.variants import PLAIN, VARIANTS
from limitations import Limitation, all_limitations
from lowering import jax_compat, registry
from lowering.ops.dtypes import COMPLEX, FLOAT, INTEGER, SIGNED, UNSIGNED
from lowering.targets import CONSUMERS

G3DOC = pathlib.Path(__file__).parents[1] / "g3doc"
EVIDENCE = G3DOC / "evidence.json"
OF_CONSUMERS = G3DOC / "consumers.json"
ACCURACY = G3DOC / "accuracy.json"
MODELS = G3DOC / "convert_models_results.json"
DOCUMENTS = (
    "accuracy.md",
    "consumers.md",
    "convert_models_results.md",
    "jax_primitives_coverage.md",
    "no_xla_limitations.md",
    "primitives_with_limited_support.md",
)

_GROUPS = {
    "all": arguments.ALL,
    "number": arguments.NUMBER,
    "inexact": arguments.INEXACT,
    "integer": INTEGER,
    "signed": SIGNED,
    "unsigned": UNSIGNED,
    "float": FLOAT,
    "complex": COMPLEX,
}


# What users call the consumers.
CONSUMER_NAMES = {"tflite": "TF Lite", "onnx": "ONNX", "tfjs": "TF.js"}


class MissingSweepError(ValueError):
    """A database has no sweep of a kind."""


class Coverage(NamedTuple):
    """What the documents say about one primitive.

    Attributes:
      name: the name of the primitive.
      versions: the versions of JAX that lower it for the CPU.
      status: "lowered", "refused" or "not yet".
      reason: why it is refused; empty if it is not.
      dtypes: the dtypes of its harnesses.
      harnesses: how many harnesses it has, in the version of JAX with most of them.
      cells: how many cells were run, with all versions.
      equal: how many of them were equal to JAX.
    """

    name: str
    versions: Sequence[str]
    status: str
    reason: str
    dtypes: str
    harnesses: int
    cells: int
    equal: int


def coverage(swept: Mapping[str, Evidence]) -> list[Coverage]:
    """The coverage of each primitive that a version of JAX lowers for the CPU."""
    lowered = registry.primitives()
    rows = []
    for name in sorted({name for e in swept.values() for name in e.primitives}):
        reason = registry.facts(name).refusal or ""
        rows.append(
            Coverage(
                name=name,
                versions=[v for v, e in swept.items() if name in e.primitives],
                status="lowered" if name in lowered else "refused" if reason else "not yet",
                reason=reason,
                dtypes=dtype_summary({d for e in swept.values() for d in e.cells.get(name, ())}),
                harnesses=max(e.harnesses.get(name, 0) for e in swept.values()),
                cells=sum(e.count(name) for e in swept.values()),
                equal=sum(e.count(name, Outcome.EQUAL) for e in swept.values()),
            )
        )
    return rows


def dtype_summary(dtypes: Collection[str] | None) -> str:
    """Names of dtypes, in which the name of a group replaces those of all its members."""
    if dtypes is None:
        return "all"
    left = set(dtypes)
    names = []
    for group, members in _GROUPS.items():
        of_group = {arguments.name(dtype) for dtype in members}
        if of_group <= left:
            names.append(group)
            left -= of_group
    return ", ".join([*names, *sorted(left)])


def render(
    swept: Mapping[str, Evidence], of_consumers: Mapping[str, Evidence] | None = None
) -> dict[str, str]:
    """The documents by file name.

    Args:
      swept: the evidence of each version of JAX.
      of_consumers: that of the runtimes of consumers; by default the committed one.
    """
    of_consumers = evidence.read(OF_CONSUMERS) if of_consumers is None else of_consumers
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(G3DOC / "templates"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["thousands"] = lambda n: f"{n:,}"
    environment.filters["dtypes"] = dtype_summary
    rows = coverage(swept)
    models_evaluated = results.read(MODELS)
    values: dict[str, Any] = {
        "accuracy": json.loads(ACCURACY.read_text()),
        "converters": list(CONVERTERS.values()),
        "evidence": list(swept.values()),
        "models_evaluated": list(models_evaluated.values()),
        "models_tables": tables(models_evaluated),
        "coverage": rows,
        "variants": [variant for variant in VARIANTS if variant != PLAIN],
        "with_status": _group(rows),
        "limitations": _limitations(swept, of_consumers=False),
        "of_consumers": list(of_consumers.values()),
        "consumers": CONSUMER_NAMES,
        "core_dtypes": CORE_DTYPES,
        "swept_dtypes": lambda e: {d for of_primitive in e.cells.values() for d in of_primitive},
        "by_primitive": by_primitive(of_consumers.values()),
        "limitations_of_consumers": _limitations(of_consumers, of_consumers=True),
        "count": lambda primitives, column: sum(
            e.count(primitive, column=column) for e in swept.values() for primitive in primitives
        ),
    }
    return {
        name: environment.get_template(f"{name}.jinja").render(values).rstrip() + "\n"
        for name in DOCUMENTS
    }


def _group(rows: Sequence[Coverage]) -> dict[str, list[Coverage]]:
    groups = collections.defaultdict(list)
    for row in rows:
        groups[row.status].append(row)
    return groups


def _limitations(
    swept: Mapping[str, Evidence], of_consumers: bool
) -> list[tuple[str, Limitation, int]]:
    """Each limitation with its primitive and the number of cells that it covers.

    They are those of the runtimes of consumers, or all others.
    """
    return [
        (p, limitation, sum(e.limited.get(p, {}).get(limitation.reason, 0) for e in swept.values()))
        for p, limitations in sorted(all_limitations().items())
        for limitation in limitations
        if evidence.is_of_consumers(limitation) == of_consumers
    ]


def by_primitive(swept: Iterable[Evidence]) -> dict[str, dict[str, str]]:
    """For each primitive and consumer its dtypes, with how many cells are equal if not all are."""
    found: dict[str, dict[str, str]] = {}
    for primitive in sorted({name for e in swept for name in e.cells}):
        found[primitive] = {}
        for consumer in CONSUMER_NAMES:
            parts = []
            for dtype in CONSUMER_DTYPES:
                ran = sum(e.count(primitive, None, f"{consumer} ", dtype) for e in swept)
                equal = sum(e.count(primitive, Outcome.EQUAL, f"{consumer} ", dtype) for e in swept)
                if ran:
                    parts.append(dtype if equal == ran else f"**{dtype} {equal}/{ran}**")
            found[primitive][consumer] = ", ".join(parts)
    return found


def import_sweep(path: pathlib.Path, swept: Mapping[str, Evidence]) -> dict[str, Evidence]:
    """`swept` with the evidence of the sweep in a database by the installed version of JAX.

    Raises:
      ValueError: if there is no complete sweep of all harnesses, or if it is not green.
    """
    with contextlib.closing(Database(path, writable=False)) as database:
        found = [
            sweep
            for selection in (
                Selection(per_harness="all"),
                Selection(with_consumers=True),
                Selection(),
            )
            for sweep, ran in database.finished(selection.as_data())
            if ran == versions()
        ]
        for sweep in found[:1]:
            rows = [row for row in database.rows(sweep) if row.target not in CONSUMERS]
            _check_green(path, rows)
            new = evidence.condense(versions(), rows, jax_compat.cpu_primitives())
            return {**swept, new.versions.jax: new}
    raise MissingSweepError(_missing(path))


def import_sweep_of_consumers(
    path: pathlib.Path, swept: Mapping[str, Evidence]
) -> dict[str, Evidence]:
    """As `import_sweep`, of a sweep of the runtimes of consumers.

    It is of all dtypes, of the core dtypes, or of the others. Evidence of dtypes that it leaves out
    stays, if their harnesses and limitations have not changed since.
    """
    with contextlib.closing(Database(path, writable=False)) as database:
        found = [
            sweep
            for dtypes in (CONSUMER_DTYPES, CORE_DTYPES, OTHER_DTYPES)
            for sweep, ran in database.finished(Selection.of_consumers(dtypes).as_data())
            if ran == versions()
        ]
        for sweep in found[:1]:
            rows = database.rows(sweep)
            _check_green(path, rows)
            ran = [row for row in rows if row.verdict != Verdict.NO_VARIANT]
            new = evidence.condense(versions(), ran, jax_compat.cpu_primitives(), True)
            before = swept.get(new.versions.jax)
            if before is not None and _is_of_other_dtypes(before, new):
                both = _current_fingerprint(before.dtypes | new.dtypes)
                new = evidence.joined(before, new, both)
            return {**swept, new.versions.jax: new}
    raise MissingSweepError(_missing(path))


def _is_of_other_dtypes(before: Evidence, new: Evidence) -> bool:
    """Whether evidence is still valid beside that of a new sweep."""
    return (
        before.versions == new.versions
        and not before.dtypes & new.dtypes
        and before.fingerprint == _current_fingerprint(before.dtypes)
    )


def _current_fingerprint(dtypes: Collection[str]) -> str:
    """The fingerprint of the harnesses of some dtypes, by the runtimes of consumers."""
    with jax.enable_x64(True):
        harnesses = [h for h in all_harnesses().values() if h.dtype_name in dtypes]
        return evidence.fingerprint(harnesses, of_consumers=True)


def _missing(path: pathlib.Path) -> str:
    return (
        f"{path} has no complete sweep of all harnesses, nor one of the runtimes of consumers, by "
        "the versions that now run"
    )


def _rows(path: pathlib.Path) -> list[Row]:
    """The results of all sweeps in a database."""
    with contextlib.closing(Database(path, writable=False)) as database:
        return [row for sweep in database.sweeps() for row in database.rows(sweep.id)]


def _check_green(path: pathlib.Path, rows: Sequence[Row]) -> None:
    bad = sum(not Verdict(row.verdict).is_as_expected for row in rows)
    if bad:
        raise ValueError(f"the sweep in {path} has {bad} unexpected or stale cells")


def stale(swept: Mapping[str, Evidence], documents: Mapping[str, str]) -> list[str]:
    """What is out of date, as lines to print."""
    problems = [
        f"{name} is out of date: run `make docs`"
        for name, text in documents.items()
        if not (G3DOC / name).exists() or (G3DOC / name).read_text() != text
    ]
    with jax.enable_x64(True):
        current = evidence.fingerprint(all_harnesses().values())
    if jax.__version__ in swept and swept[jax.__version__].fingerprint != current:
        problems.append(
            f"harnesses or limitations have changed since they were swept with JAX "
            f"{jax.__version__}: run `make sweep` and `make docs ARGS='--database sweep.sqlite'`"
        )
    of_consumers = evidence.read(OF_CONSUMERS).get(jax.__version__)
    if of_consumers is not None and of_consumers.fingerprint != _current_fingerprint(
        of_consumers.dtypes
    ):
        problems.append(
            "harnesses or limitations of consumers have changed since they were swept with JAX "
            f"{jax.__version__}: run `make sweep ARGS=--consumers` and `make docs "
            "ARGS='--database sweep.sqlite'`"
        )
    return problems


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.regenerate_docs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args(argv)

    swept, of_consumers = evidence.read(EVIDENCE), evidence.read(OF_CONSUMERS)
    if args.database is not None:
        try:
            try:
                swept = import_sweep(args.database, swept)
            except MissingSweepError:
                of_consumers = import_sweep_of_consumers(args.database, of_consumers)
        except (ValueError, DatabaseError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
        if not args.check:
            times.write_means(G3DOC / "times.json", _rows(args.database))
    documents = render(swept, of_consumers)
    if args.check:
        problems = stale(swept, documents)
        print("\n".join(problems) or "the documents are up to date")
        return 1 if problems else 0
    evidence.write(EVIDENCE, swept)
    if of_consumers:
        evidence.write(OF_CONSUMERS, of_consumers)
    for name, text in documents.items():
        (G3DOC / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
