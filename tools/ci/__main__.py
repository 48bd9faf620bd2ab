"""What a change has to pass: lint, site, tests, demo in a browser, sweeps with two versions of JAX.

    .ci/run             # what has changed since everything passed, and a sample of the rest
    .ci/run --full      # everything

Everything that a change can reach runs in full, and a sample of the rest. The sources determine the
sample: it stays the same until one of them changes. When all has passed, their state is recorded in
`.ci/passed.json`, to be committed; `tools/ci/reach.py` says what is reached.
"""

import argparse
import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence

from harnesses import browser
from tools.ci import reach, record
from tools.ci.reach import ROOT
from tools.ci.selecting import Selected

# The sweep is a step of its own, with both versions of JAX.
SWEEP = "tests/harnesses/test_primitives.py::test_all_cells_are_as_expected"
# How long the cells of a primitive take in a sweep: where a change can reach all of them, and where
# it reaches none. With a newer JAX nearly all programs become the same graphs.
_REACHED, _NEWER, _OTHERS = 1.5, 0.8, 0.8
# If a change reaches more primitives than these, it is not all cells of each of them that are run.
_MOST_WHOLE = 12
# Minutes after which both sweeps are to have ended, and how many they take on two cores.
# Where tests take long, the sweeps are smaller samples.
_SWEEPS_UNTIL, _BOTH_SWEEPS = 60, 15
# The harnesses for absl's runner are so many shards, of which one is run.
_SHARDS = 300
# What has been computed on this machine: results of graphs that have been run (see
# `harnesses.runs`), and programs that JAX has compiled, which are the same for most sources.
_CACHE = pathlib.Path.home() / ".cache" / "lowering"
_MOST_BYTES = 4 * 2**30


@dataclasses.dataclass
class Steps:
    """The steps of a run: how long each took, and which failed."""

    seconds: dict[str, float]
    failed: list[str] = dataclasses.field(default_factory=list)

    def run(self, name: str, *command: str, **environment: str) -> None:
        """Runs a command as a step."""
        print(f"== {name}: {' '.join(command)}", flush=True)
        with self.timed(name):
            done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
        if done.returncode:
            self.failed.append(name)

    @contextlib.contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Adds the time of a block to that of a step."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - start

    def report(self) -> str:
        """Where the time went."""
        total = sum(self.seconds.values())
        lines = [f"== {total / 60:.1f} minutes"]
        lines += [f"{s:8.0f} s  {s / total:4.0%}  {name}" for name, s in self.seconds.items()]
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is run because of a change.

    Attributes:
      changed: the sources that have changed.
      known: what tests and primitives reach.
      full: whether to run everything, whatever has changed.
      seed: draws samples.
      start: when the run began, in seconds since the epoch.
    """

    changed: frozenset[str]
    known: reach.Reach
    full: bool
    seed: str
    start: float = dataclasses.field(default_factory=time.time)

    @classmethod
    def of(cls, full: bool, spent: float) -> "Plan":
        """The plan for the sources of the checkout, of a run that began `spent` seconds ago."""
        return cls(
            changed=frozenset(reach.hashes()) if full else reach.changed(),
            known=reach.read(),
            full=full,
            seed=reach.seed(),
            start=time.time() - spent,
        )

    @functools.cached_property
    def primitives(self) -> frozenset[str]:
        """The primitives that the change can reach."""
        return self.known.primitives_of(self.changed)

    @property
    def reaches_most(self) -> bool:
        """Whether the change can reach so many primitives that not all of their cells are run."""
        return self.full or not self.known.primitives or len(self.primitives) > _MOST_WHOLE

    @property
    def whole(self) -> list[str]:
        """The primitives of which all cells are run."""
        if self.full:
            return []
        if not self.reaches_most:
            return sorted(self.primitives)
        own = [name for name in self.primitives if record.own(name) & self.changed]
        return sorted(own) if len(own) <= _MOST_WHOLE else []

    def selected(self) -> Selected:
        """The tests to run.

        If the change reaches most of them, only some of those that are many or take long are run,
        unless the test itself has changed, or a source that few tests execute.
        """
        reached = self.known.tests_of(self.changed)
        reaches_most = len(reached) > len(self.known.tests) / 2
        few = self.known.few_tests_of(self.changed)
        unchanged = {name for name in reached - few if name.split("::")[0] not in self.changed}
        return Selected(
            seed=self.seed,
            known=() if self.full else frozenset(self.known.tests),
            reached=reached,
            seconds=dict(self.known.seconds),
            left_out=(SWEEP,),
            sampled=unchanged if reaches_most and not self.full else (),
        )

    def sweep(self, is_newer: bool) -> list[str]:
        """The options of a sweep."""
        of_reached = _NEWER if is_newer else _REACHED
        seconds = of_reached if self.reaches_most else _OTHERS
        if not self.full:
            left = _SWEEPS_UNTIL - (time.time() - self.start) / 60
            # The second sweep has half of the time of both.
            seconds *= min(1.0, max(0.1, left / _BOTH_SWEEPS * (1 + is_newer)))
        options = ["--seconds", f"{seconds:.2g}", "--turn", self.seed + "-newer" * is_newer]
        return options + [f"--whole={primitive}" for primitive in self.whole]

    def __str__(self) -> str:
        tests, primitives = self.known.tests, self.known.primitives
        return (
            f"== {len(self.changed)} sources have changed since everything passed; they reach "
            f"{len(self.selected().reached)} of the {len(tests)} test functions whose reach is "
            f"known, and {len(self.primitives)} of {len(primitives)} primitives\n"
            f"== what runs of the rest is drawn by the seed {self.seed}, a hash of the sources"
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs all steps; returns the exit code."""
    args = _parse(argv)
    plan = Plan.of(args.full, args.spent)
    print(plan)
    steps = Steps({"environment": args.spent})
    steps.run("lint", "make", "lint")
    steps.run("site", "make", "site")
    with tempfile.TemporaryDirectory() as folder:
        runs, compiled = _caches(pathlib.Path(folder) if args.full else _CACHE)
        os.environ.update(_cached_by_jax(compiled))
        selected = pathlib.Path(folder) / "selected.json"
        plan.selected().write(selected)
        steps.run(
            "tests",
            *("make", "test", f"ARGS=--randomly-seed={int(plan.seed[:8], 16)}"),
            LOWERING_SELECTED=str(selected),
            LOWERING_PROGRAMS="100",
            LOWERING_SEED=plan.seed,
            LOWERING_TURNS="all" if args.full else "",
        )
        if _has_browser():
            steps.run("demo", "make", "demo-test")
        else:
            print("== no browser found; the demo and the exports were not used in one")
        # A shard of the harnesses as other projects would run them.
        steps.run(
            "absl",
            *(sys.executable, "-m", "harnesses.primitives_test"),
            TEST_TOTAL_SHARDS=str(_SHARDS),
            TEST_SHARD_INDEX=str(int(plan.seed, 16) % _SHARDS),
        )
        for is_newer in (False, True):
            if is_newer and not args.newer:
                print("== no newer Python found; the harnesses ran with one version of JAX")
                continue
            name = "newer" if is_newer else "sweep"
            options = " ".join(
                [*plan.sweep(is_newer), f"--runs={runs}", f"--database={folder}/{name}.sqlite"]
            )
            environment = [f"PYTHON={args.newer}", "VENV=.venv-newer"] if is_newer else []
            title = "sweep with a newer JAX" if is_newer else "sweep"
            steps.run(title, "make", "sweep", *environment, f"ARGS={options}")
    print(steps.report())
    if steps.failed:
        print(f"== FAILED: {', '.join(steps.failed)}; the seed was {plan.seed}")
        return 1
    reach.PASSED.write_text(json.dumps(reach.hashes(), indent=0) + "\n")
    print("== passed")
    return 0


def _has_browser() -> bool:
    """Whether Chromium is found, in which tests use pages and run models."""
    try:
        browser.chromium()
    except FileNotFoundError:
        return False
    return True


def _caches(folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    """The directories in which results of graphs and compiled programs are found and kept."""
    # Machine code is that of one kind of processor.
    compiled = f"jax-{platform.machine()}-{zlib.crc32(_processor().encode()):08x}"
    caches = folder / "runs", folder / compiled
    for cache in caches:
        _make_room(cache)
    return caches


def _processor() -> str:
    """The model and the instructions of the processor."""
    info = pathlib.Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor()
    names = ("model name", "flags", "Features")
    return "\n".join(sorted({x for x in info.read_text().splitlines() if x.startswith(names)}))


def _cached_by_jax(folder: pathlib.Path) -> dict[str, str]:
    """The environment in which JAX keeps all that it compiles, as small as it may be."""
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


def _make_room(cache: pathlib.Path) -> None:
    """Removes the oldest files of a directory, if they are too many."""
    files = sorted(cache.glob("*"), key=lambda path: path.stat().st_mtime, reverse=True)
    size = 0
    for path in files:
        size += path.stat().st_size
        if size > _MOST_BYTES:
            path.unlink()


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    description, _, epilog = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(
        prog=".ci/run",
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--full", action="store_true", help="run everything")
    parser.add_argument("--newer", default="", help="a newer Python, which brings another JAX")
    parser.add_argument(
        "--spent", type=float, default=0.0, help="seconds that the environments have taken"
    )
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
