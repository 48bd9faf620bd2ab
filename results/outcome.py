"""What may happen in a cell, and whether that is as expected."""

import enum
from collections.abc import Mapping


class Outcome(enum.StrEnum):
    """What happened in a cell."""

    EQUAL = "equal"
    DIFFERENT = "different"
    LOWERING_ERROR = "lowering error"
    TF_ERROR = "TF error"
    CRASH = "crash"
    TIMEOUT = "timeout"
    JAX_ERROR = "JAX itself cannot"
    HARNESS_ERROR = "harness error"


class Verdict(enum.StrEnum):
    """Whether an outcome is as expected, given the limitations.

    A cell is stale if a limitation covers it although it is equal. There is no variant where JAX
    cannot map, differentiate or trace a harness.
    """

    EQUAL = "equal"
    LIMITED = "limited"
    UNEXPECTED = "unexpected"
    STALE = "stale"
    NO_VARIANT = "no variant"

    @property
    def is_as_expected(self) -> bool:
        """Whether a sweep with this verdict can be green."""
        return self not in (Verdict.UNEXPECTED, Verdict.STALE)


# What people call the cells of a verdict.
_SAID = {
    Verdict.EQUAL: "equal",
    Verdict.LIMITED: "expected failures",
    Verdict.UNEXPECTED: "unexpected failures",
    Verdict.STALE: "unexpected passes",
}


def summary(counts: Mapping[str, int]) -> str:
    """How many cells have each verdict, in words.

    Args:
      counts: numbers of cells by their verdicts; those that are left out are 0.
    """
    return ", ".join(f"{counts.get(verdict, 0)} {said}" for verdict, said in _SAID.items())
