"""Measures how much memory and time exports take, by the size of the parameters.

    python -m tools.measure_memory --sizes 100 400 1600 --svg memory.svg

Each export runs in a process of its own: a chain of dense layers whose float32 parameters are
`jax.Array`s, verified. Memory is that of the process at its peak, beyond what it had before the
export, parameters excluded. Linux counts the peak.
"""

import argparse
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lowering import export
from results.figures import Measured
from tools import performance
from tools.pictures import Picture
from tools.terminal import run

STATUS, FORGET = (pathlib.Path("/proc/self") / name for name in ("status", "clear_refs"))
FORMATS = ("saved_model", "tfjs", "onnx", "tflite")

# The features of a layer, whose weights have 16 MB.
_FEATURES = 2048
_MEGABYTE = 1_000_000


class Cost(NamedTuple):
    """What an export takes.

    Attributes:
      size: the bytes of the parameters.
      peak: the bytes of memory at the peak, beyond what was there before.
      seconds: how long it takes.
    """

    size: int
    peak: int
    seconds: float


def _bytes(name: str) -> int:
    """A figure on the memory of this process."""
    rows = (line.split() for line in STATUS.read_text().splitlines())
    return 1024 * next(int(row[1]) for row in rows if row[0] == f"{name}:")


def _predict(params: dict[str, jax.Array], x: jax.Array) -> jax.Array:
    for weights in params.values():
        x = jnp.tanh(x @ weights)
    return x


def measure(to: str, megabytes: int) -> Cost:
    """Exports parameters of a size in this process.

    Args:
      to: the format, of `FORMATS`.
      megabytes: the size of the parameters; that of a layer is the least.
    """
    count = max(1, round(megabytes * _MEGABYTE / (4 * _FEATURES**2)))
    rng = np.random.default_rng(0)

    def layer() -> jax.Array:
        return jnp.asarray(rng.standard_normal((_FEATURES, _FEATURES), np.float32) / 64)

    x = np.ones((1, _FEATURES), np.float32)
    exporter = getattr(export, f"to_{to}")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # What the first export imports and keeps is no part of the second.
        exporter(_predict, (x,), folder / "small", params={"w": jnp.eye(_FEATURES)[:, :_FEATURES]})
        params = {f"w{i}": layer() for i in range(count)}
        jax.block_until_ready(params)
        gc.collect()
        FORGET.write_text("5")
        before = _bytes("VmRSS")
        begin = time.perf_counter()
        exporter(_predict, (x,), folder / "model", params=params)
        seconds = time.perf_counter() - begin
    size = sum(w.nbytes for w in params.values())
    return Cost(size, _bytes("VmHWM") - before, seconds)


def plot(costs: Mapping[str, Sequence[Cost]]) -> str:
    """A picture of memory and time over the size of parameters, by format, as SVG."""
    picture = Picture(720, 380, "How much memory and time does an export take?")
    largest = max(cost.size for found in costs.values() for cost in found)
    panels = (
        (60.0, "memory / size of the parameters", lambda cost: cost.peak / cost.size),
        (410.0, "seconds", lambda cost: cost.seconds),
    )
    for left, title, of in panels:
        top = max(of(cost) for found in costs.values() for cost in found)
        picture.text(left, 62, title)
        for share in (0.0, 0.5, 1.0):
            y = 330 - 250 * share
            picture.line([(left, y), (left + 280, y)], "grid")
            picture.text(left - 6, y + 4, f"{top * share:.3g}", "quiet", "end")
            at = f"{largest * share / 1e9:.2g} GB"
            picture.text(left + 280 * share, 350, at, "quiet", "middle")
        for style, found in zip("abcd", costs.values(), strict=False):
            points = [
                (left + 280 * cost.size / largest, 330 - 250 * of(cost) / top) for cost in found
            ]
            picture.line(points, f"{style} line")
            for x, y in points:
                picture.dot(x, y, style)
    for i, (style, name) in enumerate(zip("abcd", costs, strict=False)):
        picture.rectangle(60 + 150 * i, 362, 10, 10, style)
        picture.text(76 + 150 * i, 371, name)
    return picture.render()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure_memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400], help="in megabytes")
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=FORMATS)
    parser.add_argument("--svg", type=pathlib.Path, metavar="FILE", help="write a plot")
    parser.add_argument("--one", action="store_true", help="measure in this process")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    if args.one:
        print(json.dumps(measure(args.formats[0], args.sizes[0])))
        return 0
    costs: dict[str, list[Cost]] = {}
    with performance.recording(args.database, "python -m tools.measure_memory") as record:
        for to in args.formats:
            for size in sorted(args.sizes):
                command = [sys.executable, "-m", "tools.measure_memory", "--one"]
                command += ["--formats", to, "--sizes", str(size)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                cost = Cost(*json.loads(done.stdout.splitlines()[-1]))
                costs.setdefault(to, []).append(cost)
                ratio = cost.peak / cost.size
                print(f"{to}, {size} MB: {ratio:.2f} times, {cost.seconds:.0f} s", flush=True)
                program = f"exports of {size} MB"
                record(program, f"{to}, memory / parameters", Measured(ratio, ratio, ratio))
                seconds = cost.seconds
                record(program, f"{to}, time", Measured(seconds, seconds, seconds, "s"))
    if args.svg is not None:
        args.svg.write_text(plot(costs))
    return 0


if __name__ == "__main__":
    run(main)
