"""Selections: which cells a sweep runs."""

import collections
import dataclasses
import difflib
import fnmatch
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from harnesses import cell
from harnesses.cell import ALL_MODES, DEVICES, RUNTIME, SWEPT, Cell
from harnesses.harness import DTYPES_OF_64_BITS, Harness
from harnesses.times import Times
from harnesses.variants import MORE_AXES, PLAIN, SETTINGS, VARIANTS
from lowering.targets import CONSUMERS, TARGETS

# The dtypes whose harnesses a sweep also runs by the runtimes of consumers, unless it has filters.
CORE_DTYPES = ("float32", "int32", "bool")
OTHER_DTYPES = (
    *("int8", "int16", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "complex64"),
)
NARROW_DTYPES = (
    *("int2", "uint2", "int4", "uint4", "float4_e2m1fn", "float8_e3m4", "float8_e4m3"),
    *("float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2"),
    *("float8_e5m2fnuz", "float8_e8m0fnu"),
)
# Those that programs seldom have; some runtimes lack 64 bits.
RARE_DTYPES = (*NARROW_DTYPES, *DTYPES_OF_64_BITS)
# One of so many harnesses that runtimes run has more axes.
_MORE_AXES_OF = 4
# The dtypes whose harnesses consumers are held to, which are all.
CONSUMER_DTYPES = (*CORE_DTYPES, *OTHER_DTYPES, *RARE_DTYPES)


class SelectionError(ValueError):
    """A filter selects nothing, or too little to be measured."""


@dataclasses.dataclass(frozen=True)
class Selection:
    """Which cells a sweep runs.

    Attributes:
      primitives: names of primitives, or patterns such as "reduce_*".
      dtypes: names of dtypes, or patterns such as "float*".
      modes: names of modes.
      targets: names of targets.
      devices: names of devices.
      variants: names of variants, or patterns.
      share: which of the variants that match: all, none but the plain harnesses, or a part; see
        `_variants`.
      per_harness: in which of the modes and on which of the targets each harness is run: in "all"
        of them, in "one" mode on one target, or "half" of the harnesses of each primitive and dtype
        in one. Which they are differs from turn to turn;
        besides, cells that a limitation covers are always run. A part of the variants has at most
        each mode on one target.
      with_consumers: whether half of the harnesses of the core dtypes are also run by the runtime
        of one of the consumers each; which, and by which one, differs from turn to turn.
      seconds: about how long the plain cells of a primitive may take, and so long again its
        variants and its cells of runtimes, by recorded times; None for any time. At least one cell
        of each is run, and which of them fit differs from turn to turn. Cells that a limitation
        covers are always run.
      whole: names of primitives, or patterns, of which all harnesses are run in all modes on all
        targets, and with `with_consumers` by all runtimes, whatever the other fields say.
    """

    primitives: Sequence[str] = ("*",)
    dtypes: Sequence[str] = ("*",)
    modes: Sequence[str] = ALL_MODES
    targets: Sequence[str] = SWEPT
    devices: Sequence[str] = ("cpu",)
    variants: Sequence[str] = ("*",)
    share: str = "part"
    per_harness: str = "one"
    with_consumers: bool = False
    seconds: float | None = None
    whole: Sequence[str] = ()

    @classmethod
    def of_consumers(
        cls,
        dtypes: Sequence[str] = CONSUMER_DTYPES,
        primitives: Sequence[str] = ("*",),
        targets: Sequence[str] = CONSUMERS,
    ) -> "Selection":
        """All harnesses of some dtypes and primitives by the runtimes of consumers, or of some.

        One of each primitive and one of each dtype is also run with more axes.
        """
        return cls(
            primitives=primitives,
            dtypes=dtypes,
            modes=(RUNTIME,),
            targets=targets,
            variants=(PLAIN, MORE_AXES),
            per_harness="all",
        )

    def as_data(self) -> dict[str, Any]:
        """The selection as JSON data; the same whatever the order of the filters."""
        fields = dataclasses.asdict(self)
        # Absent where they limit nothing, as in files that are older than these fields.
        for name in ("seconds", "whole"):
            if not fields[name]:
                del fields[name]
        return {
            key: sorted(set(x)) if isinstance(x, list | tuple) else x for key, x in fields.items()
        }

    def cells(
        self, catalogue: Mapping[str, Harness], turn: str = "", times: Times | None = None
    ) -> dict[str, list[Cell]]:
        """The selected cells by the name of their harness.

        Args:
          catalogue: the harnesses by name.
          turn: which part is taken, of variants or of the cells of a harness.
          times: how long cells take; the committed table by default.

        Raises:
          SelectionError: if a filter selects nothing, or TensorFlow lacks a device.
        """
        modes = _select(self.modes, ALL_MODES, "mode")
        targets = _select(self.targets, TARGETS, "target")
        devices = _select(self.devices, DEVICES, "device")
        for device in devices:
            if not tf.config.list_physical_devices(device.upper()):
                raise SelectionError(f"TensorFlow finds no device {device!r} on this machine")
        primitives = _select(
            self.primitives, sorted({h.primitive for h in catalogue.values()}), "primitive"
        )
        harnesses = [h for h in catalogue.values() if h.primitive in primitives]
        known = sorted({h.dtype_name for h in harnesses})
        # Sweeps of consumers are of all their dtypes by default; primitives may lack some.
        is_chosen = set(self.dtypes) != set(CONSUMER_DTYPES)
        of_primitives = [dtype for dtype in self.dtypes if is_chosen or dtype in known]
        dtypes = _select(of_primitives or self.dtypes, known, "dtype")
        harnesses = [h for h in harnesses if h.dtype_name in dtypes]
        variants = _select(self.variants, VARIANTS, "variant")
        taken = _variants(harnesses, turn, self.share)

        half = _half(harnesses, turn)
        whole = {name for name in primitives if matches(name, self.whole)}
        if self.whole and not whole:
            _select(self.whole, primitives, "primitive")

        def cells_of(harness, variant):
            cells = cell.cells_of(harness, modes, targets, devices, variant)
            if harness.primitive in whole and variant == PLAIN:
                return cells
            if self.per_harness == "all" and (variant == PLAIN or self.share == "all"):
                return cells
            drawn = _drawn(turn, variant, harness.name)
            has = list(dict.fromkeys(c.mode for c in cells))
            if self.per_harness != "all":
                has = has[drawn // len(targets) % max(len(has), 1) :][:1]
            if variant == PLAIN and self.per_harness == "half" and harness.name not in half:
                has = []
            # Neighbours are on different targets.
            on = {mode: targets[(drawn + i) % len(targets)] for i, mode in enumerate(has)}
            return [
                c for c in cells if on.get(c.mode) == c.target or cell.find_limitation(harness, c)
            ]

        def by_runtimes(harness):
            of_all = harness.primitive in whole
            dtypes = CONSUMER_DTYPES if of_all else CORE_DTYPES
            if not self.with_consumers or harness.dtype_name not in dtypes:
                return []
            cells = cell.cells_of(harness, (RUNTIME,), CONSUMERS)
            if of_all:
                return cells
            chosen = CONSUMERS[_drawn(turn, RUNTIME, harness.name) % len(CONSUMERS)]
            has_more_axes = (
                harness.name in half
                and _drawn(turn, MORE_AXES, harness.name) % _MORE_AXES_OF == 0
                and _applies(MORE_AXES, harness)
            )
            variant = MORE_AXES if has_more_axes else PLAIN
            drawn = cell.cells_of(harness, (RUNTIME,), (chosen,), variant=variant)
            return [
                *(drawn if harness.name in half else ()),
                *(c for c in cells if c not in drawn and cell.find_limitation(harness, c)),
            ]

        selected = {
            harness.name: [
                c
                for variant in variants
                if variant == PLAIN or (harness.name, variant) in taken
                for c in cells_of(harness, variant)
            ]
            + by_runtimes(harness)
            for harness in harnesses
        }
        if self.seconds is None:
            return selected
        limited = {name: h for name, h in catalogue.items() if h.primitive not in whole}
        return _in_time(selected, limited, self.seconds, turn, times or Times.committed())


def _in_time(
    selected: Mapping[str, list[Cell]],
    limited: Mapping[str, Harness],
    seconds: float,
    turn: str,
    times: Times,
) -> dict[str, list[Cell]]:
    """A part of the cells of the `limited` harnesses, as `Selection.seconds` says."""
    spent: dict[tuple[str, str], float] = {}
    dropped = set()
    cells = [c for name in selected if name in limited for c in selected[name]]
    for c in sorted(cells, key=lambda c: _drawn(turn, c.harness, c.variant)):
        harness = limited[c.harness]
        if cell.find_limitation(harness, c):
            continue
        kind = RUNTIME if c.mode == RUNTIME else "variant" if c.variant != PLAIN else PLAIN
        before = spent.get((harness.primitive, kind), 0.0)
        after = before + times.of(harness.primitive, c)
        # A cell that is longer than what is left leaves room for shorter ones.
        if before and after > seconds:
            dropped.add(c)
        else:
            spent[harness.primitive, kind] = after
    return {name: [c for c in of if c not in dropped] for name, of in selected.items()}


def _variants(harnesses: Sequence[Harness], turn: str, share: str) -> set[tuple[str, str]]:
    """The variants of harnesses that are run, as pairs of harness and variant.

    The share "all" has each harness in each variant that transforms it, and for each primitive and
    dtype one harness under each setting of JAX.

    The share "some" has, for each primitive and for each dtype, one harness in each variant that
    transforms it, and for each primitive one harness under one setting, each on one target. They
    differ from turn to turn.
    """
    if share == "none":
        return set()
    transforms = [v for v in VARIANTS if v != PLAIN and v not in SETTINGS]
    taken = set()

    def take(members: Sequence[Harness], variants: Iterable[str]) -> None:
        """Takes one of the harnesses for each variant."""
        for variant in variants:
            for harness in sorted(members, key=lambda h: _drawn(turn, variant, h.name)):
                if _applies(variant, harness):
                    taken.add((harness.name, variant))
                    break

    if share == "all":
        for harness in harnesses:
            take([harness], transforms)
        for _, members in _grouped(harnesses, lambda h: (h.primitive, h.dtype_name)):
            take(members, SETTINGS)
    else:
        for primitive, members in _grouped(harnesses, lambda h: h.primitive):
            take(members, [*transforms, min(SETTINGS, key=lambda v: _drawn(turn, primitive, v))])
        for _, members in _grouped(harnesses, lambda h: h.dtype_name):
            take(members, transforms)
    return taken


def _applies(variant: str, harness: Harness) -> bool:
    """Whether a harness has a variant; one that cannot make its arguments has none."""
    try:
        return VARIANTS[variant].applies(harness)
    except Exception:  # The harness's own, which its plain cells have as their result.
        return False


def _half(harnesses: Sequence[Harness], turn: str) -> set[str]:
    """The names of half of the harnesses of each primitive and dtype, and of at least one."""
    taken = set()
    for _, members in _grouped(harnesses, lambda h: (h.primitive, h.dtype_name)):
        members.sort(key=lambda h: _drawn(turn, h.name))
        taken |= {h.name for h in members[: (len(members) + 1) // 2]}
    return taken


def _grouped(
    harnesses: Iterable[Harness], key: Callable[[Harness], Any]
) -> Iterable[tuple[Any, list[Harness]]]:
    groups = collections.defaultdict(list)
    for harness in harnesses:
        groups[key(harness)].append(harness)
    return groups.items()


def _drawn(*key: str) -> int:
    """A number that looks random, and is the same for the same key."""
    return zlib.crc32(" ".join(key).encode())


def matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _select(patterns: Iterable[str], known: Iterable[str], what: str) -> list[str]:
    """The known names that a pattern matches; each pattern must match one."""
    known = list(known)
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            similar = difflib.get_close_matches(pattern, known)
            hint = (
                f"did you mean {' or '.join(similar)}?" if similar else f"known: {', '.join(known)}"
            )
            raise SelectionError(f"no harness has the {what} {pattern!r}; {hint}")
    return [name for name in known if matches(name, patterns)]
