"""The harnesses as tests of absl and pytest: one of each for each target, mode and device.

    python -m harnesses.primitives_test --primitive 'reduce_*' --dtype int8,int16 --mode compiled
    TEST_TOTAL_SHARDS=40 TEST_SHARD_INDEX=7 pytest harnesses/primitives_test.py

A test passes if its cell is equal to JAX, or fails as a limitation states. All take hours, and more
memory than a process has; use shards. pytest runs a test of each primitive if there are none.
"""

import functools
import itertools
import os
import re
import sys
import types
import zlib
from collections.abc import Sequence
from typing import Any

import jax
from absl import app, flags
from absl.testing import absltest, parameterized

from harnesses.cell import ALL_MODES, SWEPT, Cell, Runner
from harnesses.harness import all_harnesses
from harnesses.selection import Selection, SelectionError
from harnesses.shards import Shard, take
from harnesses.times import Times
from harnesses.turn import TURN

_FLAGS = {"primitive": "*", "dtype": "*", "mode": ALL_MODES, "target": SWEPT, "device": ("cpu",)}
for _name in _FLAGS:
    flags.DEFINE_multi_string(_name, _FLAGS[_name], "Names or patterns, with commas.")


def selected(shard: str = "1/1") -> list[Cell]:
    """A shard of the cells that the flags select; of all if nobody has parsed the flags."""
    given: Any = {f"{name}s": flags.FLAGS[name].value for name in _FLAGS}
    filters: Any = {name: ",".join(given[name]).split(",") for name in given}
    by_name = Selection(**filters, share="none", per_harness="all").cells(all_harnesses())
    if not any(by_name.values()):
        raise SelectionError("no harness has these modes on these targets and devices")
    taken = take(Shard.parse(shard), by_name, all_harnesses(), Times.committed())
    return list(itertools.chain(*taken.values()))


def sample() -> list[Cell]:
    """A cell of each primitive; which one it is differs from turn to turn."""
    cells = [*itertools.chain(*Selection(share="none").cells(all_harnesses(), TURN).values())]
    cells.sort(key=lambda c: zlib.crc32(f"{TURN} {c}".encode()))
    return list({all_harnesses()[c.harness].primitive: c for c in cells}.values())


class Loader(absltest.TestLoader):
    """Keeps the tests of a harness, which share what JAX computes, in one shard."""

    def shardTestCaseNames(self, iterator, ordered_names, shard_index):  # noqa: N802
        names = sorted({name.rsplit("_", 3)[0] for name in ordered_names})
        mine = set(names[shard_index :: int(os.environ["TEST_TOTAL_SHARDS"])])
        return [name for name in ordered_names if name.rsplit("_", 3)[0] in mine]


@functools.lru_cache(maxsize=256)
def runner(harness: str) -> Runner:
    """What runs the cells of a harness; pytest may have them in any order."""
    jax.clear_caches()
    return Runner(all_harnesses()[harness])


def case_of(cells: Sequence[Cell]) -> type[parameterized.TestCase]:
    """A class that has a test for each cell."""
    names = (re.sub(r"\W", "_", f"_{c.harness}_{c.target}_{c.mode}_{c.device}") for c in cells)

    class PrimitivesTest(parameterized.TestCase):
        @parameterized.named_parameters(zip(names, cells, strict=True))
        def test(self, cell):
            with jax.enable_x64(True):
                result = runner(cell.harness).run(cell)
            why = f"{result.outcome}, {result.verdict}: {result.message or result.limitation}"
            self.assertTrue(result.verdict.is_as_expected, why)

    return PrimitivesTest


def main(argv: Sequence[str]) -> None:
    """Runs the tests of the selected cells; ends the process."""
    try:
        module = types.SimpleNamespace(PrimitivesTest=case_of(selected()))
    except SelectionError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(2)
    absltest.main(module=module, argv=list(argv), testLoader=Loader())


if __name__ == "__main__":
    app.run(main)
elif _total := os.environ.get("TEST_TOTAL_SHARDS"):
    PrimitivesTest = case_of(selected(f"{int(os.environ['TEST_SHARD_INDEX']) + 1}/{_total}"))
else:
    PrimitivesTest = case_of(sample())
