"""What a file of results holds: sweeps, and a row for each cell."""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Versions:
    """The versions of the packages and of Python that a sweep ran with."""

    jax: str
    jaxlib: str
    tensorflow: str
    numpy: str
    python: str

    def __str__(self) -> str:
        return f"JAX {self.jax}, TensorFlow {self.tensorflow}, Python {self.python}"


@dataclasses.dataclass(frozen=True)
class Sweep:
    """A sweep.

    Attributes:
      id: its number in the file.
      versions: the versions that it ran with.
      selection: the cells that it runs, as JSON.
      shard: which part of them, such as "1/3"; empty for all.
      cells: how many cells the selection has, in all shards; None if that is not known.
      turn: how many sweeps of the same selection and versions were finished before it.
      fingerprint: a hash of the sources.
      started: when it started, in UTC.
      finished: when it was complete; None if it is not.
    """

    id: int
    versions: Versions
    selection: str
    shard: str
    cells: int | None
    turn: int
    fingerprint: str
    started: str
    finished: str | None


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a cell.

    Attributes:
      harness: the name of the harness.
      primitive: the primitive that the harness exercises.
      dtype: the dtype that it is grouped under.
      mode: "eager", "graph", "compiled" or "runtime".
      target: the target that the harness is lowered for.
      device: "cpu", "gpu" or "tpu".
      variant: how the harness is transformed; "plain" if it is not.
      outcome: what happened; one of `Outcome`.
      verdict: whether that is as expected; one of `Verdict`.
      error: the worst error, in units of the tolerance.
      message: the error, or where the results differ most.
      limitation: the reason of the limitation that covers the cell; empty if none does.
      seconds: how long lowering and running took.
      ulps: the worst error of a number, in units of the last place of JAX's number; None if the
        results have no floating-point numbers, are not unique, or were not compared.
    """

    harness: str
    primitive: str
    dtype: str
    mode: str
    target: str
    device: str
    variant: str
    outcome: str
    verdict: str
    error: float
    message: str
    limitation: str
    seconds: float
    ulps: float | None = None


def columns(of: Any) -> tuple[str, ...]:
    """The columns that hold the attributes of a dataclass."""
    return tuple(field.name for field in dataclasses.fields(of))


VERSIONS = columns(Versions)
ROW = columns(Row)
# What tells the cells of a sweep apart.
CELL = ("harness", "mode", "target", "device", "variant")
