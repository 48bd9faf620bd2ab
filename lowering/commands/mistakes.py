"""Errors of a command line, with what was probably meant."""

import difflib
from collections.abc import Iterable


class CommandError(Exception):
    """The command makes no sense."""


class FaultError(Exception):
    """What the command names exists, but fails to run."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message about a word that is unknown; empty if nothing known is like it."""
    found = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
