"""What sweeps found over time: a small table, to which each import of a sweep adds a row."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Sequence

from harnesses.cell import Outcome
from harnesses.recorded import Recorded


@dataclasses.dataclass(frozen=True)
class Record:
    """The results of a sweep in numbers.

    Attributes:
      when: when the sweep ended, in UTC, as "2026-11-22T12:23".
      kind: "core" for the targets tf and xla, "consumers" for the runtimes of consumers.
      jax: the version of JAX.
      cells: how many cells were run.
      equal: how many of them were equal to JAX.
      limitations: how many limitations covered a cell, counted by primitive.
    """

    when: str
    kind: str
    jax: str
    cells: int
    equal: int
    limitations: int


def record(recorded: Recorded, kind: str, when: str) -> Record:
    """The numbers of some recorded results."""
    return Record(
        when=when[:16],
        kind=kind,
        jax=recorded.versions.jax,
        cells=recorded.total(),
        equal=sum(recorded.count(primitive, Outcome.EQUAL) for primitive in recorded.cells),
        limitations=sum(map(len, recorded.limited.values())),
    )


def added(records: Iterable[Record], new: Record) -> list[Record]:
    """Records and a new one, which replaces that of the same sweep; the oldest first."""
    kept = [r for r in records if (r.when, r.kind, r.jax) != (new.when, new.kind, new.jax)]
    return sorted([*kept, new], key=lambda r: (r.when, r.kind, r.jax))


def read(path: pathlib.Path) -> list[Record]:
    """The records in a file; none if there is no file."""
    return [Record(**fields) for fields in json.loads(path.read_text())] if path.exists() else []


def write(path: pathlib.Path, records: Sequence[Record]) -> None:
    """Writes records to a file, each on a line."""
    lines = [json.dumps(dataclasses.asdict(record)) for record in records]
    path.write_text("[\n" + ",\n".join(f" {line}" for line in lines) + "\n]\n")
