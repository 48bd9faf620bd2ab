"""Groups the failures of a sweep by cause, so that a hundred cells of one cause are a few lines."""

import collections
import re
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from harnesses.variants import PLAIN
from results.outcome import Outcome, Verdict
from results.rows import Row

# How many causes are shown, and how many names of a group.
_SHOWN_CAUSES = 25
_SHOWN_NAMES = 6
# How much of a message tells its cause, and how much is shown.
_TOLD = 200
_SHOWN = 500

# What people call the verdicts of failures.
_VERDICTS = {Verdict.UNEXPECTED: "unexpected", Verdict.STALE: "passed unexpectedly"}

# What differs between messages of the same cause, and what is put in its place; in this order.
_VARYING = (
    (r"\b0x[0-9a-f]+", "0"),
    (r"""'[^']*'|"[^"]*"|`[^`]*`|\{\{.*?\}\}""", "'...'"),
    # Names of nodes, functions and files have slashes.
    (r"[\w.:-]*(?:/[\w.:-]+)+", "'...'"),
    (r"\b(?:bool|bfloat|float|complex|u?int)\d*(?:_\w+)?\b|\bDT_\w+", "dtype"),
    (r"(?:[+-]?(?:(?<![a-z])(?:nan|inf)|\d+\.?\d*(?:e[+-]?\d+)?)j?(?![a-z]))+", "0"),
    (r"\b(?:np\.)?(?:true|false)(?:_|\b)", "0"),
    (r"\d+", "0"),
    # Shapes, indices and tuples of any rank.
    (r"[\[(][0?, ]*[\])]", "[0]"),
    # Numbers as NumPy prints them.
    (r"\bnp\.dtype\[0\]", "0"),
    (r"\s+", " "),
)


def cause(row: Row) -> tuple[str, str, str]:
    """A key for the cause of a failure: verdict, outcome, and the message without details."""
    if row.verdict == Verdict.STALE:
        return row.verdict, row.outcome, row.limitation
    message = row.message
    # Names of one harness are details of the message, too.
    for name in sorted({row.harness, row.primitive}, key=len, reverse=True):
        message = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "'...'", message)
    for pattern, replacement in _VARYING:
        message = re.sub(pattern, replacement, message, flags=re.IGNORECASE)
    return row.verdict, row.outcome, message[:_TOLD]


def grouped(rows: Iterable[Row]) -> list[list[Row]]:
    """The failures of each cause, the most frequent cause first, in it the quickest cell first."""
    groups = collections.defaultdict(list)
    for row in rows:
        if not Verdict(row.verdict).is_as_expected:
            groups[cause(row)].append(row)
    for group in groups.values():
        group.sort(key=lambda row: (row.seconds, row.harness))
    return sorted(groups.values(), key=len, reverse=True)


def reproducer(row: Row) -> str:
    """The command that repeats a failure: reduced to the smallest program, where that can be."""
    can_reduce = row.verdict == Verdict.UNEXPECTED and row.outcome not in (
        Outcome.EQUAL,
        Outcome.JAX_ERROR,
        Outcome.HARNESS_ERROR,
    )
    command = ["python", "-m", "tools.sweep"]
    command += ["--bisect", row.harness] if can_reduce else ["--primitive", row.primitive]
    if not can_reduce:
        command += ["--dtype", row.dtype]
    command += ["--mode", row.mode, "--target", row.target]
    if row.device != "cpu":
        command += ["--device", row.device]
    if row.variant != PLAIN:
        command += ["--variant", row.variant]
    elif not can_reduce:
        command += ["--variants", "none"]
    return shlex.join(command)


def lines(rows: Iterable[Row]) -> list[str]:
    """The failures by cause, as lines to print."""
    groups = grouped(rows)
    found = [line for group in groups[:_SHOWN_CAUSES] for line in _about(group)]
    if rest := groups[_SHOWN_CAUSES:]:
        found.append(
            f"... and {_count(sum(map(len, rest)), 'cell')} of {_count(len(rest), 'other cause')}; "
            "the database has them all"
        )
    return found


def _about(group: Sequence[Row]) -> list[str]:
    row = group[0]
    said = row.limitation if row.verdict == Verdict.STALE else row.message
    said = textwrap.shorten(said, _SHOWN, placeholder=" ...")
    places = sorted({f"{r.mode} on {r.target} ({r.device})" for r in group})
    return [
        f"{_count(len(group), 'cell')} {_VERDICTS[Verdict(row.verdict)]}: {row.outcome}: {said}",
        f"    {_some(sorted({_name(r) for r in group}))}; {_some(places)}",
        f"    {reproducer(row)}",
    ]


def _name(row: Row) -> str:
    return row.harness if row.variant == PLAIN else f"{row.harness} ({row.variant})"


def _some(names: Sequence[str]) -> str:
    """The names, or the first of them and how many there are."""
    shown = ", ".join(names[:_SHOWN_NAMES])
    return shown if len(names) <= _SHOWN_NAMES else f"{shown} and {len(names) - _SHOWN_NAMES} more"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
