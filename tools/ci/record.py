"""Records what tests and primitives reach: writes `.ci/reach.json`.

    python3.12 -m tools.ci.record                  # all tests and primitives; about an hour
    python3.12 -m tools.ci.record tests/export     # some tests; the others stay as they are
    python3.12 -m tools.ci.record --primitives     # the primitives alone

Sources are observed with Python 3.12 or newer.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence

import jax
import tqdm

from harnesses import cell
from harnesses.cell import ALL_MODES
from harnesses.harness import Harness, all_harnesses
from lowering.targets import TARGETS
from tools.ci import observed, reach
from tools.ci.reach import Reach
from tools.ci.recording import INTO
from tools.ci.selecting import without_parameters
from tools.families import family

# Tests that take less, in seconds, need not come first.
_LONG = 5.0
# So many harnesses of a primitive show what it reaches.
_HARNESSES = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Records, and writes the file; returns the exit code of pytest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tests", nargs="*", help="arguments of pytest; all tests by default")
    parser.add_argument("--primitives", action="store_true", help="record the primitives alone")
    parser.add_argument(
        "--into",
        type=pathlib.Path,
        help="a directory that keeps what tests have seen; one that has some is used as it is",
    )
    args = parser.parse_args(argv)
    before = reach.read()
    code = 0
    tests, seconds = dict(before.tests), dict(before.seconds)
    if not args.primitives:
        with tempfile.TemporaryDirectory() as made:
            folder = args.into or pathlib.Path(made)
            if not list(folder.glob("*.jsonl")):
                code = _run_tests(args.tests, folder)
            seen, took = read(folder)
        tests, seconds = {**tests, **seen}, {**seconds, **took}
    tests = {name: of for name, of in tests.items() if (reach.ROOT / name.split("::")[0]).exists()}
    of_primitives = before.primitives if args.tests else primitives(all_harnesses())
    reach.write(Reach(tests, of_primitives, {n: seconds[n] for n in seconds if n in tests}))
    return code


def _run_tests(tests: Sequence[str], folder: pathlib.Path) -> int:
    command = [sys.executable, "-m", "pytest", "-p", "tools.ci.recording"]
    command += ["--numprocesses", "auto", "--maxprocesses", "4", "--dist", "worksteal", *tests]
    return subprocess.run(command, cwd=reach.ROOT, env={**os.environ, INTO: str(folder)}).returncode


def read(folder: pathlib.Path) -> tuple[dict[str, frozenset[str]], dict[str, float]]:
    """The sources that each test function has reached, and the seconds of those that take long."""
    seen: dict[str, set[str]] = collections.defaultdict(set)
    seconds: dict[str, float] = collections.defaultdict(float)
    for path in folder.glob("tests-*.jsonl"):
        for record in map(json.loads, path.read_text().splitlines()):
            name = without_parameters(record["test"])
            seen[name] |= set(record["seen"])
            took = sum(duration for _, _, duration in record["reports"])
            seconds[name] = max(seconds[name], round(took, 1))
    long = {name: took for name, took in seconds.items() if took >= _LONG}
    return {name: frozenset(of) for name, of in seen.items()}, long


def primitives(harnesses: Mapping[str, Harness]) -> dict[str, frozenset[str]]:
    """The sources that each primitive reaches: those of its cases, and what some of them execute.

    Some harnesses of each run as graphs on all targets, and one in the other modes, too.
    """
    by_primitive = collections.defaultdict(list)
    for harness in harnesses.values():
        by_primitive[harness.primitive].append(harness)
    observed.start()
    found = {}
    with jax.enable_x64(True):
        for name, of in tqdm.tqdm(by_primitive.items(), unit="primitive"):
            observed.restart()
            for i, harness in enumerate(of[:: -(-len(of) // _HARNESSES)]):
                modes = ALL_MODES if i == 0 else ("graph",)
                # Cells that fail have reached what they reach.
                list(cell.run(harness, cell.cells_of(harness, modes, tuple(TARGETS))))
            found[name] = frozenset(observed.seen() | own(name))
    return found


def own(primitive: str) -> set[str]:
    """The files of a primitive's family: its rules, cases and limitations."""
    return {f"{folder}{family(primitive)}.py" for folder in reach.OWN}


if __name__ == "__main__":
    sys.exit(main())
