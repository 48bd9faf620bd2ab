"""Shards: parts of a selection that machines run side by side.

Each machine computes all shards, and runs its own. They are the same everywhere if the sources and
the recorded times are.
"""

import heapq
from collections.abc import Mapping
from typing import NamedTuple

from harnesses.cell import Cell
from harnesses.harness import Harness
from harnesses.times import Times


class Shard(NamedTuple):
    """One of `total` shards; the first has the number 1."""

    number: int
    total: int

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """Reads a shard such as "1/3".

        Raises:
          ValueError: if it is none.
        """
        number, slash, count = text.partition("/")
        if not (slash and number.isascii() and number.isdigit()):
            raise ValueError(f"a shard is a number of a number, such as 1/3, not {text[:20]!r}")
        is_number = count.isascii() and count.isdigit() and len(text) < 20
        if not (is_number and 1 <= int(number) <= int(count)):
            raise ValueError(
                f"there is no shard {text[:20]!r}; the shards of three are 1/3, 2/3 and 3/3"
            )
        return cls(int(number), int(count))

    def __str__(self) -> str:
        return f"{self.number}/{self.total}"


def take(
    shard: Shard,
    selected: Mapping[str, list[Cell]],
    harnesses: Mapping[str, Harness],
    times: Times,
) -> dict[str, list[Cell]]:
    """The cells of a shard, by the name of their harness.

    All cells of a harness are in one shard, as they share what JAX computes. The harnesses are
    dealt out, the longest first, each to the shard that has least to do.

    Args:
      shard: which shard to return.
      selected: the cells of all shards.
      harnesses: the harnesses by name.
      times: how long cells take.
    """
    seconds = {
        name: sum(times.of(harnesses[name].primitive, c) for c in cells)
        for name, cells in selected.items()
    }
    # There is nothing for more shards than harnesses. Of shards with the same time, the one with
    # fewer cells gets the next harness.
    count = min(shard.total, len(seconds))
    loads = [(0.0, 0, number) for number in range(1, count + 1)]
    taken = set()
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        load, cells, number = heapq.heappop(loads)
        heapq.heappush(loads, (load + seconds[name], cells + len(selected[name]), number))
        if number == shard.number:
            taken.add(name)
    return {name: cells for name, cells in selected.items() if name in taken}
