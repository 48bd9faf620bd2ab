"""A limitation says which cells of a primitive cannot be equal to JAX, and why.

Limitations are strict both ways: a cell that none covers must be equal, and a cell that one covers
must fail as stated, or the limitation is stale.
"""

import dataclasses
import enum
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from limitations import processors

# What is not read as it stands in a regular expression of an error: a character behind a backslash,
# any text, a choice in parentheses, and where a text begins and ends.
_SPECIAL = re.compile(r"\\(.)|\.[*+]|[|()^$]")


class Looser(enum.StrEnum):
    """A comparison that is looser than that of a harness; `harnesses` has its comparer."""

    # Where JAX's results are not finite, the others are not finite either.
    NAN_REACHES = "nan_reaches"
    # Where all arguments are moderate, between 2^-100 and 2^16 in size, the results are near each
    # other: by 2e-5, or by 1e-6 of 1. A part of a complex number may be zero, too.
    MODERATE = "moderate"
    # The same by 5e-4, or by 1e-5 of 1.
    MODERATE_WITH_FEWER_DIGITS = "moderate_with_fewer_digits"
    # As moderate, for arguments between 2^-10 and 2^10 in size.
    NEAR_ONE = "near_one"
    # As moderate, where JAX's results are below 2^100 in size.
    MODERATE_RESULTS = "moderate_results"
    # Where JAX's results are infinite, the others may be the largest finite numbers of their sign.
    FINITE_FOR_INFINITE = "finite_for_infinite"


@dataclasses.dataclass(frozen=True)
class Limitation:
    """Why some cells of a primitive are not equal to JAX.

    Exactly one of `error` and `looser` states what happens in these cells.

    Attributes:
      reason: one sentence that gives the cause outside of this project.
      error: a regular expression that the outcome and message of the error match, such as
        "TF error: .*no kernel".
      looser: the looser comparison by which the different results are equal.
      dtypes: names of the dtypes of the cells that it covers; None for all.
      modes: "eager", "graph", "compiled"; None for all.
      targets: names of targets; None for all.
      devices: "cpu", "gpu", "tpu"; None for all.
      variants: names of variants of harnesses, "plain" for harnesses as they are; None for all.
      where: a predicate on the case and params of a harness; None for all.
      avx512: whether the processor has AVX-512; None for all processors.
    """

    reason: str
    error: str | None = None
    looser: Looser | None = None
    dtypes: Collection[str] | None = None
    modes: Collection[str] | None = None
    targets: Collection[str] | None = None
    devices: Collection[str] | None = None
    variants: Collection[str] | None = ("plain",)
    where: Callable[[str, Mapping[str, Any]], bool] | None = None
    avx512: bool | None = None

    def __post_init__(self):
        if (self.error is None) == (self.looser is None):
            raise ValueError("a limitation states either an error or a looser comparer")

    @property
    def error_in_words(self) -> str | None:
        """The error for people: "…" for any text, and "or" between texts of which one is there."""
        if self.error is None:
            return None
        words = {".*": "…", ".+": "…", "|": " or ", "(": "", ")": "", "^": "", "$": ""}
        said = _SPECIAL.sub(lambda found: found[1] or words[found[0]], self.error)
        return re.sub(r" ?… ?", " … ", said).strip()

    @property
    def is_of_this_processor(self) -> bool:
        """Whether it covers cells on the processor of this machine."""
        return self.avx512 is None or self.avx512 == processors.has_avx512()

    def covers(
        self,
        *,
        case: str,
        dtype: str,
        params: Mapping[str, Any],
        mode: str,
        target: str,
        device: str,
        variant: str = "plain",
    ) -> bool:
        """Whether this limitation covers the cell that the arguments describe."""
        return (
            self.is_of_this_processor
            and (self.dtypes is None or dtype in self.dtypes)
            and (self.modes is None or mode in self.modes)
            and (self.targets is None or target in self.targets)
            and (self.devices is None or device in self.devices)
            and (self.variants is None or variant in self.variants)
            and (self.where is None or self.where(case, params))
        )


@functools.cache
def all_limitations() -> Mapping[str, Sequence[Limitation]]:
    """All limitations by primitive.

    A module in `limitations/primitives/` has a mapping `LIMITATIONS` from the name of a primitive
    to its limitations.

    Raises:
      ValueError: if two modules have limitations of the same primitive.
    """
    package = importlib.import_module("limitations.primitives")
    by_primitive: dict[str, Sequence[Limitation]] = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"limitations.primitives.{info.name}")
        for primitive, limitations in module.LIMITATIONS.items():
            if primitive in by_primitive:
                raise ValueError(f"two modules have limitations of {primitive!r}")
            by_primitive[primitive] = tuple(limitations)
    return by_primitive


def limitations_of(primitive: str) -> Sequence[Limitation]:
    """The limitations of a primitive."""
    return all_limitations().get(primitive, ())
