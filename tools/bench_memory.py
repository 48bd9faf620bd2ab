"""Prints how much memory an export to ONNX takes at its peak, as a multiple of the parameters.

    python -m tools.bench_memory --megabytes 400 3000
    python -m tools.bench_memory --database results.sqlite    # keeps the figures

The model is a stack of dense layers, and each size has a process of its own. What counts is what
comes on top of what the process had before, the parameters among it; the model is verified. Linux
counts the peak, and forgets it when asked to.
"""

import argparse
import gc
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from lowering import export
from tools import performance

_STATUS, _FORGET = (pathlib.Path("/proc/self") / name for name in ("status", "clear_refs"))

# The rows and columns of a layer, which has 100 MB.
_FEATURES = 5000


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", nargs="+", type=int, default=[400, 3000])
    parser.add_argument("--here", action="store_true", help="measure in this process")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    if args.here:
        print(*(peak(megabytes) for megabytes in args.megabytes))
        return 0
    command = "python -m tools.bench_memory --megabytes " + " ".join(map(str, args.megabytes))
    with performance.recording(args.database, command) as record:
        for megabytes in args.megabytes:
            here = [sys.executable, "-m", "tools.bench_memory", "--here", "--megabytes"]
            run = subprocess.run(
                [*here, str(megabytes)], check=True, capture_output=True, text=True
            )
            times = float(run.stdout.split()[-1])
            print(f"{megabytes} MB of parameters: {times:.2f} times that at the peak", flush=True)
            value = performance.measured(np.array([times]))
            record(f"{megabytes} MB of dense layers", "ONNX, memory / parameters", value)
    return 0


def peak(megabytes: int) -> float:
    """By how much the process grows at most in an export, as a multiple of the parameters."""
    count = round(megabytes * 1e6 / (4 * _FEATURES**2))
    _export(_parameters(1, 64), 64)
    params = _parameters(count, _FEATURES)
    gc.collect()
    _FORGET.write_text("5")
    before = _bytes("VmRSS")
    _export(params, _FEATURES)
    return (_bytes("VmHWM") - before) / sum(x.nbytes for x in params)


def _parameters(count: int, features: int) -> list[jax.Array]:
    draw = np.random.default_rng(0).standard_normal
    scale = np.float32(features**-0.5)
    return [
        (scale * jnp.asarray(draw((features, features), np.float32))).block_until_ready()
        for _ in range(count)
    ]


def _export(params: Sequence[jax.Array], features: int) -> None:
    """Exports layers with parameters to a file, and runs the model."""

    def predict(params: Sequence[jax.Array], x: jax.Array) -> jax.Array:
        for w in params:
            x = jnp.tanh(x @ w)
        return x

    x = jax.ShapeDtypeStruct((1, features), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "model.onnx")
        export.to_onnx(predict, (x,), path, params=params, external_data=True)


def _bytes(name: str) -> int:
    lines = (line.split() for line in _STATUS.read_text().splitlines())
    return 1024 * next(int(line[1]) for line in lines if line[0] == f"{name}:")


if __name__ == "__main__":
    sys.exit(main())
