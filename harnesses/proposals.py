"""Proposes limitations that are exact for the unexpected results of a sweep."""

import dataclasses
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from harnesses import cell as cells
from harnesses.cell import DEVICES, RUNTIME, SWEPT, Cell
from harnesses.harness import Harness
from harnesses.variants import VARIANTS
from limitations import Looser, limitations_of
from lowering.targets import CONSUMERS, TARGETS
from results.outcome import Outcome, Verdict
from results.rows import Row

# The looser comparisons, those that compare more before the others.
_LOOSER = (
    Looser.FINITE_FOR_INFINITE,
    Looser.MODERATE,
    Looser.MODERATE_WITH_FEWER_DIGITS,
    Looser.NEAR_ONE,
    Looser.NAN_REACHES,
)
# What differs between cells that fail for one reason: places in sources, shapes and numbers.
_VARYING = re.compile(r"\S*/\S*( \(\S*\))?|0x[0-9a-f]+|\[[^\]]*\]|\d+(\.\d+)?")
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")
_LENGTH = 120


@dataclasses.dataclass(frozen=True)
class Place:
    """The cells that a limitation is to cover: all combinations of its cases and the others.

    Attributes:
      cases: the names of cases.
      dtypes: the dtypes of these cases.
      modes: names of modes.
      targets: names of targets.
      devices: names of devices; None for all, where a sweep had one device.
      variants: names of variants.
      others: the names of further cases of these dtypes, which are not to be covered.
    """

    cases: frozenset[str]
    dtypes: frozenset[str]
    modes: frozenset[str]
    targets: frozenset[str]
    devices: frozenset[str] | None
    variants: frozenset[str]
    others: frozenset[str]


@dataclasses.dataclass(frozen=True)
class New:
    """A limitation that is missing; one of `error` and `looser` says what happens.

    Attributes:
      message: what one of its cells said.
      error: the regular expression for the error.
      looser: the looser comparison.
      place: the cells.
    """

    message: str
    error: str | None
    looser: Looser | None
    place: Place


@dataclasses.dataclass(frozen=True)
class Narrower:
    """A limitation that is stale, at least in some cells.

    Attributes:
      number: its number among those of the primitive.
      places: the cells that it is left; none if it is to be removed.
    """

    number: int
    places: Sequence[Place]


@dataclasses.dataclass(frozen=True)
class Proposal:
    """How the limitations of a primitive are to change.

    Attributes:
      new: those that are missing.
      narrower: those that are stale.
      unexplained: cells with other results that no looser comparison takes for equal.
    """

    new: Sequence[New]
    narrower: Sequence[Narrower]
    unexplained: Sequence[Row]


def propose(
    rows: Iterable[Row],
    catalogue: Mapping[str, Harness],
    loosest: Callable[[Harness, Cell], Collection[Looser]] | None = None,
) -> dict[str, Proposal]:
    """The changes of limitations after which the results would be as expected, by primitive.

    Args:
      rows: the results of sweeps.
      catalogue: the harnesses by name.
      loosest: the looser comparisons by which the results of a cell are equal; by default it runs
        the cell again, as only its worst error is recorded.
    """
    of_primitive = defaultdict(list)
    for row in rows:
        if row.harness in catalogue:
            of_primitive[row.primitive].append(row)
    proposals = {
        primitive: _Primitive(primitive, found, catalogue).propose(loosest or cells.looser_of)
        for primitive, found in sorted(of_primitive.items())
    }
    return {p: x for p, x in proposals.items() if x.new or x.narrower or x.unexplained}


def boxes(points: Collection[tuple[Any, ...]]) -> list[tuple[frozenset[Any], ...]]:
    """Products of sets that have no point in common, and together exactly the given points.

    Args:
      points: distinct tuples of the same length, at least one.
    """
    axes = tuple(map(frozenset, zip(*points, strict=True)))
    if math.prod(map(len, axes)) == len(points):
        return [axes]
    rests: dict[Any, set[Any]] = defaultdict(set)
    for point in points:
        rests[point[0]].add(point[1:])
    firsts: dict[frozenset[Any], set[Any]] = defaultdict(set)
    for first, of_first in rests.items():
        firsts[frozenset(of_first)].add(first)
    return [(frozenset(some), *box) for rest, some in firsts.items() for box in boxes(rest)]


def pattern(outcome: str, message: str) -> str:
    """A regular expression for an error, with ".*" for what differs from cell to cell."""
    line = f"{outcome}: {message}".partition("\n")[0]
    parts = _VARYING.split(line[:_LENGTH])[:: _VARYING.groups + 1]
    escaped = [_SPECIAL.sub(r"\\\1", part) for part in parts]
    return re.sub(r"(\.\*[\s,:]*)+", ".*", ".*".join(escaped)).removesuffix(".*").rstrip()


class _Primitive:
    """The results of a primitive."""

    def __init__(self, primitive: str, rows: Sequence[Row], catalogue: Mapping[str, Harness]):
        self._primitive, self._rows, self._catalogue = primitive, rows, catalogue
        self._dtypes = {
            h.case: h.dtype_name for h in catalogue.values() if h.primitive == primitive
        }
        self._has_one_device = len({row.device for row in rows}) == 1

    def propose(self, looser_of: Callable[[Harness, Cell], Collection[Looser]]) -> Proposal:
        groups: dict[tuple[str | None, Looser | None], list[Row]] = defaultdict(list)
        unexplained = []
        for row in self._rows:
            if row.verdict != Verdict.UNEXPECTED:
                continue
            if row.outcome != Outcome.DIFFERENT:
                groups[pattern(row.outcome, row.message), None].append(row)
                continue
            found = looser_of(self._catalogue[row.harness], _cell(row))
            looser = next((looser for looser in _LOOSER if looser in found), None)
            if looser is None:
                unexplained.append(row)
            else:
                groups[None, looser].append(row)
        new = [
            New(failed[0].message, error, looser, place)
            for (error, looser), failed in groups.items()
            for place in self._places(map(_cell, failed))
        ]
        return Proposal(new, self._narrower(), unexplained)

    def _narrower(self) -> list[Narrower]:
        """The limitations that cover cells which are equal, or no cell at all."""
        ran = {_cell(row): row.verdict for row in self._rows}
        covered = self._covered()
        found = []
        for number, limitation in enumerate(limitations_of(self._primitive)):
            of_limitation = covered[id(limitation)]
            gone = [c for c in of_limitation if ran.get(c) == Verdict.STALE]
            # What the sweep has not run stays as it is.
            left = [
                c
                for c in of_limitation
                if ran.get(c) not in (Verdict.STALE, Verdict.NO_VARIANT)
                and _is_swept(c)
                and (limitation.devices is not None or c.device == "cpu")
            ]
            if gone or not of_limitation:
                found.append(Narrower(number, self._places(left)))
        return found

    def _covered(self) -> dict[int, list[Cell]]:
        """The cells that each limitation of the primitive covers, by its identity."""
        covered = defaultdict(list)
        for harness in self._catalogue.values():
            if harness.primitive != self._primitive:
                continue
            # A variant that has the limitations of the harness as it is makes none of them stay.
            for variant in (name for name, kind in VARIANTS.items() if not kind.is_as_plain):
                for c in cells.cells_of(
                    harness, targets=tuple(TARGETS), devices=DEVICES, variant=variant
                ):
                    covered[id(cells.find_limitation(harness, c))].append(c)
        return covered

    def _places(self, chosen: Iterable[Cell]) -> list[Place]:
        """The places that are exactly some cells."""
        points = {
            (self._catalogue[c.harness].case, c.mode, c.target, c.device, c.variant) for c in chosen
        }
        return [self._place(*box) for box in boxes(points)] if points else []

    def _place(
        self,
        cases: frozenset[str],
        modes: frozenset[str],
        targets: frozenset[str],
        devices: frozenset[str],
        variants: frozenset[str],
    ) -> Place:
        dtypes = frozenset(self._dtypes[case] for case in cases)
        others = frozenset(
            case for case, dtype in self._dtypes.items() if dtype in dtypes and case not in cases
        )
        has_one = self._has_one_device and len(devices) == 1
        return Place(cases, dtypes, modes, targets, None if has_one else devices, variants, others)


def predicate(place: Place) -> str | None:
    """The predicate of a limitation on the cases of a place, in Python; None if it takes all."""
    if not place.others:
        return None
    cases = sorted(place.cases)
    head = "lambda case, params: "
    if len(cases) == 1:
        return f"{head}case == {cases[0]!r}"
    prefix = _common(cases)
    if prefix and not any(case.startswith(prefix) for case in place.others):
        return f"{head}case.startswith({prefix!r})"
    suffix = _common([case[::-1] for case in cases])[::-1]
    if suffix and not any(case.endswith(suffix) for case in place.others):
        return f"{head}case.endswith({suffix!r})"
    return f"{head}case in {{{', '.join(map(repr, cases))}}}"


def _is_swept(cell: Cell) -> bool:
    """Whether sweeps run a cell: for targets of runtimes, they run the cells of a runtime alone."""
    return cell.target in (CONSUMERS if cell.mode == RUNTIME else SWEPT)


def _common(names: Sequence[str]) -> str:
    """The longest common beginning of some names."""
    first, last = min(names), max(names)
    return first[: next((i for i, c in enumerate(first) if last[i : i + 1] != c), len(first))]


def _cell(row: Row) -> Cell:
    return Cell(row.harness, row.mode, row.target, row.device, row.variant)
