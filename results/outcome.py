"""What may happen in a cell, and whether that is as expected."""

import enum


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
