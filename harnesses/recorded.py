"""Recorded results: the counts of cells of complete sweeps, which the documents are made of.

It is small enough to commit. Each version of JAX has its own, and the documents cover all of them.
"""

import collections
import dataclasses
import hashlib
import json
import math
import pathlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from harnesses.cell import SWEPT, Outcome, Verdict
from harnesses.database import Row, Versions
from harnesses.harness import Harness
from harnesses.variants import PLAIN
from limitations import Limitation, all_limitations
from lowering.targets import TARGETS


@dataclasses.dataclass(frozen=True)
class Recorded:
    """The recorded results of one version of JAX.

    Attributes:
      versions: the versions that the sweep ran with.
      fingerprints: by primitive, a hash of its harnesses and limitations at the time of the sweep.
      primitives: the primitives that this JAX lowers for the CPU.
      harnesses: how many harnesses each primitive has.
      columns: the targets and modes, such as "tf eager".
      cells: by primitive, dtype and outcome, the number of cells in each column.
      limited: by primitive and reason of the limitation, the number of limited cells.
      variants: by variant, the number of cells of the part that the sweep took. Everything else is
        about harnesses as they are.
      ulps: by dtype and target, the worst error of a number in a cell that is equal, in units of
        the last place; infinite errors left out, as of results that need not be finite.
    """

    versions: Versions
    fingerprints: Mapping[str, str]
    primitives: Sequence[str]
    harnesses: Mapping[str, int]
    columns: Sequence[str]
    cells: Mapping[str, Mapping[str, Mapping[str, Sequence[int]]]]
    limited: Mapping[str, Mapping[str, int]]
    variants: Mapping[str, int] = dataclasses.field(default_factory=dict)
    ulps: Mapping[str, Mapping[str, float]] = dataclasses.field(default_factory=dict)

    @property
    def targets(self) -> frozenset[str]:
        """The targets that were swept."""
        return frozenset(column.split()[0] for column in self.columns)

    @property
    def dtypes(self) -> frozenset[str]:
        """The dtypes of the harnesses that were swept."""
        return frozenset(dtype for of_primitive in self.cells.values() for dtype in of_primitive)

    def total(self) -> int:
        """How many cells there are."""
        return sum(map(self.count, self.cells))

    def count(
        self,
        primitive: str,
        outcome: Outcome | None = None,
        column: str = "",
        dtype: str | None = None,
    ) -> int:
        """How many cells of a primitive there are.

        Args:
          primitive: the name of the primitive.
          outcome: counts only the cells with this outcome.
          column: counts only the columns whose names start with this.
          dtype: counts only the cells of this dtype.
        """
        chosen = [i for i, name in enumerate(self.columns) if name.startswith(column)]
        return sum(
            counts[i]
            for of_dtype, by_outcome in self.cells.get(primitive, {}).items()
            if dtype is None or of_dtype == dtype
            for name, counts in by_outcome.items()
            for i in chosen
            if outcome is None or name == outcome
        )


def condense(versions: Versions, rows: Sequence[Row], primitives: Iterable[str]) -> Recorded:
    """The recorded results of a complete sweep.

    Args:
      versions: the versions that the sweep ran with.
      rows: its results.
      primitives: the primitives that this JAX lowers for the CPU.
    """
    variants = collections.Counter(
        row.variant for row in rows if row.variant != PLAIN and row.verdict != Verdict.NO_VARIANT
    )
    plain = [row for row in rows if row.variant == PLAIN]
    # Of harnesses that JAX itself cannot run as consumers do, there is nothing to count.
    rows = [row for row in plain if row.verdict != Verdict.NO_VARIANT]
    columns = sorted({_column(row) for row in rows})
    names = collections.defaultdict(set)
    cells: dict[str, Any] = {}
    limited: dict[str, dict[str, int]] = {}
    ulps: dict[str, dict[str, float]] = {}
    for row in rows:
        if row.verdict == Verdict.EQUAL and row.ulps is not None and math.isfinite(row.ulps):
            of_dtype = ulps.setdefault(row.dtype, {})
            of_dtype[row.target] = max(of_dtype.get(row.target, 0.0), float(f"{row.ulps:.3g}"))
        names[row.primitive].add(row.harness)
        by_outcome = cells.setdefault(row.primitive, {}).setdefault(row.dtype, {})
        counts = by_outcome.setdefault(row.outcome, [0] * len(columns))
        counts[columns.index(_column(row))] += 1
        if row.verdict == Verdict.LIMITED:
            of_primitive = limited.setdefault(row.primitive, {})
            of_primitive[row.limitation] = of_primitive.get(row.limitation, 0) + 1
    return Recorded(
        versions=versions,
        fingerprints=_fingerprints(
            ((row.primitive, row.harness, row.dtype) for row in plain),
            {row.target for row in plain},
        ),
        primitives=sorted(primitives),
        harnesses={primitive: len(harnesses) for primitive, harnesses in names.items()},
        columns=columns,
        cells=cells,
        limited=limited,
        variants=dict(variants),
        ulps=ulps,
    )


def without(recorded: Recorded, primitives: Collection[str]) -> Recorded:
    """Recorded results without some primitives; the worst errors stay those of all."""

    def rest(by_primitive: Mapping[str, Any]) -> dict[str, Any]:
        return {p: value for p, value in by_primitive.items() if p not in primitives}

    return dataclasses.replace(
        recorded,
        fingerprints=rest(recorded.fingerprints),
        harnesses=rest(recorded.harnesses),
        cells=rest(recorded.cells),
        limited=rest(recorded.limited),
    )


def joined(recorded: Recorded, other: Recorded, fingerprints: Mapping[str, str]) -> Recorded:
    """The recorded results of two sweeps by the same versions, of other dtypes or primitives.

    Args:
      recorded: the recorded results of one sweep.
      other: that of the other sweep.
      fingerprints: those of the harnesses of both.

    Raises:
      ValueError: if the sweeps had other versions.
    """
    if recorded.versions != other.versions:
        raise ValueError("sweeps of other versions have no recorded results in common")
    columns = sorted({*recorded.columns, *other.columns})
    cells: dict[str, Any] = {}
    limited: dict[str, dict[str, int]] = {}
    harnesses: collections.Counter[str] = collections.Counter()
    for part in (recorded, other):
        harnesses.update(part.harnesses)
        for primitive, by_dtype in part.cells.items():
            cells.setdefault(primitive, {}).update(
                {
                    dtype: {
                        outcome: _in_columns(columns, dict(zip(part.columns, counts, strict=True)))
                        for outcome, counts in by_outcome.items()
                    }
                    for dtype, by_outcome in by_dtype.items()
                }
            )
        for primitive, by_reason in part.limited.items():
            of_primitive = limited.setdefault(primitive, {})
            for reason, count in by_reason.items():
                of_primitive[reason] = of_primitive.get(reason, 0) + count
    variants = collections.Counter(recorded.variants) + collections.Counter(other.variants)
    ulps = {dtype: dict(by_target) for dtype, by_target in recorded.ulps.items()}
    for dtype, by_target in other.ulps.items():
        of_dtype = ulps.setdefault(dtype, {})
        for target, worst in by_target.items():
            of_dtype[target] = max(of_dtype.get(target, 0.0), worst)
    return dataclasses.replace(
        other,
        fingerprints=fingerprints,
        columns=columns,
        harnesses=dict(harnesses),
        cells=cells,
        limited=limited,
        ulps=ulps,
        variants=dict(variants),
    )


def _in_columns(columns: Sequence[str], counts: Mapping[str, int]) -> list[int]:
    return [counts.get(column, 0) for column in columns]


def fingerprints(harnesses: Iterable[Harness], targets: Collection[str]) -> dict[str, str]:
    """By primitive, a hash of its harnesses and of the limitations of their dtypes.

    Args:
      harnesses: the harnesses.
      targets: the targets whose limitations count.
    """
    return _fingerprints(((h.primitive, h.name, h.dtype_name) for h in harnesses), targets)


def is_natural(limitation: Limitation) -> bool:
    """Whether a limitation is one of natural targets alone, those of runtimes among them."""
    natural = {name for name, target in TARGETS.items() if target.is_natural}
    return limitation.targets is not None and set(limitation.targets) <= natural


def read(path: pathlib.Path) -> dict[str, Recorded]:
    """The recorded results in a file, by version of JAX, the oldest first; none without a file."""
    data = json.loads(path.read_text()) if path.exists() else {}
    recorded = [Recorded(**{**e, "versions": Versions(**e["versions"])}) for e in data.values()]
    return {e.versions.jax: e for e in sorted(recorded, key=_age)}


def write(path: pathlib.Path, recorded: Mapping[str, Recorded]) -> None:
    """Writes recorded results to a file, with a line for each primitive and dtype."""
    data = {version: dataclasses.asdict(e) for version, e in recorded.items()}
    path.write_text(_dump(data) + "\n")


def _age(recorded: Recorded) -> list[int]:
    """A key that sorts recorded results by version of JAX."""
    return [int(part) if part.isdigit() else -1 for part in recorded.versions.jax.split(".")]


def _column(row: Row) -> str:
    return f"{row.target} {row.mode}"


def _fingerprints(
    harnesses: Iterable[tuple[str, str, str]], targets: Collection[str]
) -> dict[str, str]:
    names = collections.defaultdict(set)
    for primitive, *harness in harnesses:
        names[primitive].add(tuple(harness))
    limitations = all_limitations()
    return {
        primitive: _fingerprint(sorted(of_primitive), limitations.get(primitive, ()), targets)
        for primitive, of_primitive in sorted(names.items())
    }


def _fingerprint(
    names: Sequence[tuple[str, ...]],
    limitations: Iterable[Limitation],
    targets: Collection[str],
) -> str:
    swept = {dtype for _, dtype in names}
    data: list[Any] = [names]
    for limitation in limitations:
        fields = dataclasses.asdict(limitation)
        if limitation.dtypes is not None:
            fields["dtypes"] = sorted(swept.intersection(limitation.dtypes))
        if not set(targets) & set(limitation.targets or SWEPT) or fields["dtypes"] == []:
            continue
        fields["where"] = fields["where"] is not None
        if limitation.avx512 is None:
            del fields["avx512"]
        data.append(fields)
    encoded = json.dumps(data, sort_keys=True, default=sorted)
    return hashlib.sha256(encoded.encode()).hexdigest()[:8]


def _dump(data: Any, depth: int = 0) -> str:
    """JSON with sorted keys; each value at the fourth level is on one line."""
    if depth == 4 or not isinstance(data, Mapping) or not data:
        return json.dumps(data, sort_keys=True)
    indent = " " * depth
    lines = [f"{indent} {json.dumps(k)}: {_dump(data[k], depth + 1)}" for k in sorted(data)]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
