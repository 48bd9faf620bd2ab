"""Results of the evaluation: rows, the file that keeps them, and the journal of a run."""

import dataclasses
import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, Self

from harnesses.database import Versions
from harnesses.evaluation.program import Case
from harnesses.models import NAMES, SIZES

# In place of a converter: whether JAX itself can trace the model.
JAX = "jax"


@dataclasses.dataclass(frozen=True)
class Row:
    """The outcome of a converter on a case.

    Attributes:
      case: the case.
      converter: the name of the converter's module, or `JAX`.
      ok: whether it converts, runs, and computes what JAX computes.
      multiples: for `JAX`, what the sizes of symbolic dimensions have to be multiples of.
      seconds: the time of the conversion.
      file_size: the size of the model's files in bytes; 0 if it has none.
      error: the largest difference from JAX, as a fraction of the largest magnitude in an output.
      message: why it is not ok.
      lacks: what the runtime itself lacks, if that is why; a sentence.
    """

    case: Case
    converter: str
    ok: bool
    multiples: Mapping[str, int] = dataclasses.field(default_factory=dict)
    seconds: float = 0.0
    file_size: int = 0
    error: float = 0.0
    message: str = ""
    lacks: str = ""

    def as_data(self) -> dict[str, Any]:
        """The row as data for JSON, without what is not set."""
        data = dataclasses.asdict(self)
        case = data.pop("case")
        return {**case, **{k: v for k, v in data.items() if v or k == "ok"}}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """The row of `as_data`."""
        fields = dict(data)
        case = Case(fields.pop("size"), fields.pop("model"), tuple(fields.pop("symbolic")))
        return cls(case=case, **fields)


@dataclasses.dataclass(frozen=True)
class Evaluated:
    """The rows of one version of JAX, by case and converter."""

    versions: Versions
    rows: Mapping[tuple[Case, str], Row]

    def updated(self, rows: Iterable[Row]) -> "Evaluated":
        """The same with further rows, which replace those of the same case and converter."""
        return Evaluated(self.versions, {**self.rows, **_by_key(rows)})


def read(path: pathlib.Path) -> dict[str, Evaluated]:
    """The results in a file, by version of JAX, the oldest first; nothing if there is no file."""
    data = json.loads(path.read_text()) if path.exists() else {}
    return {
        version: Evaluated(Versions(**e["versions"]), _by_key(map(Row.from_data, e["rows"])))
        for version, e in data.items()
    }


def write(path: pathlib.Path, evaluated: Mapping[str, Evaluated]) -> None:
    """Writes results to a file, with a line for each row; those of unknown models are left out."""
    parts = []
    for version in sorted(evaluated, key=_numbers):
        e = evaluated[version]
        known = [r for r in e.rows.values() if r.case.model in NAMES]
        lines = [json.dumps(r.as_data()) for r in sorted(known, key=_place)]
        rows = ",\n  ".join(lines)
        versions = json.dumps(dataclasses.asdict(e.versions))
        parts.append(f'"{version}": {{\n "versions": {versions},\n "rows": [\n  {rows}\n ]}}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


class Journal:
    """A file of the rows of a run, so that it can be continued if it is interrupted."""

    def __init__(self, path: pathlib.Path, versions: Versions, sources: str, fresh: bool) -> None:
        """Opens a journal, which starts anew if it is that of other versions or sources.

        Args:
          path: the file.
          versions: the versions of this run.
          sources: a hash of the sources that results depend on.
          fresh: whether to start anew in any case.
        """
        self._path = path
        head = json.dumps([dataclasses.asdict(versions), sources])
        lines = path.read_text().splitlines() if path.exists() and not fresh else []
        # The last line has no end if the run was killed while it wrote.
        rows = [line for line in lines[1:] if line.endswith("}")] if lines[:1] == [head] else []
        path.write_text("\n".join([head, *rows]) + "\n")
        self.rows = [Row.from_data(json.loads(line)) for line in rows]

    def add(self, row: Row) -> None:
        """Records a row."""
        self.rows.append(row)
        with self._path.open("a") as file:
            file.write(json.dumps(row.as_data()) + "\n")

    def end(self) -> None:
        """Removes the file of a run that is complete."""
        self._path.unlink()


def _by_key(rows: Iterable[Row]) -> dict[tuple[Case, str], Row]:
    return {(row.case, row.converter): row for row in rows}


def _numbers(version: str) -> list[int]:
    """A key that sorts versions."""
    return [int(part) if part.isdigit() else -1 for part in version.split(".")]


def _place(row: Row) -> tuple[Any, ...]:
    """A key that sorts rows by size, model, number of symbolic dimensions and converter."""
    case = row.case
    return (SIZES.index(case.size), case.model, len(case.symbolic), case.symbolic, row.converter)
