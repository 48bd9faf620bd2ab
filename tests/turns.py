"""What tests take turns with: one of several ways, and another one whenever sources change.

`.ci/run` sets LOWERING_SEED, which draws the turn; LOWERING_TURNS=all runs all ways.
"""

import os
import zlib
from collections.abc import Sequence
from typing import TypeVar

from harnesses.sweep import fingerprint

_T = TypeVar("_T")

_SEED = os.environ.get("LOWERING_SEED") or fingerprint()
ALL = os.environ.get("LOWERING_TURNS") == "all"


def number(*key: str) -> int:
    """A number that is the same for the same key and sources."""
    return zlib.crc32(" ".join([_SEED, *key]).encode())


def turns(options: Sequence[_T], *key: str) -> Sequence[_T]:
    """One of the options, or all of them if no turns are taken."""
    return options if ALL else [options[number(*key) % len(options)]]
