"""Measures how much memory and time exports take, by the size of the parameters.

    python -m tools.measure_memory --sizes 100 400 1600 --database results.sqlite

Each export runs in a process of its own: a chain of dense layers whose parameters are `jax.Array`s,
verified. Memory is that of the process at its peak, beyond what it had before the
export, parameters excluded. Linux counts the peak. "tflite by TensorFlow" is what its own converter
takes for the same network, written in TensorFlow.
"""

import argparse
import functools
import gc
import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from lowering import export
from results.figures import Measured
from tools import performance
from tools.terminal import run

STATUS, FORGET = (pathlib.Path("/proc/self") / name for name in ("status", "clear_refs"))


class Format(NamedTuple):
    """What is exported.

    Attributes:
      to: the format, as `lowering.export` calls it.
      options: those of the export.
      dtype: that of the parameters.
      has_data: whether the export takes representative data.
      by: the exporter; that of `lowering.export` by default.
    """

    to: str
    options: Mapping[str, Any] = {}
    dtype: Any = jnp.float32
    has_data: bool = False
    by: Callable[..., Any] | None = None

    @property
    def exporter(self) -> Callable[..., Any]:
        """The exporter with the options."""
        return functools.partial(self.by or getattr(export, f"to_{self.to}"), **self.options)


def _by_tensorflow(
    fun: Callable[..., Any], args: Sequence[Any], path: pathlib.Path, params: dict[str, jax.Array]
) -> None:
    """Writes a TF Lite model as TensorFlow's guides do, by hand; nothing of this package is used.

    `fun` is `_predict`, whose layers are written here in TensorFlow. Nothing is verified.
    """
    module = tf.Module()
    module.weights = [tf.Variable(np.asarray(w)) for w in params.values()]

    @tf.function(input_signature=[tf.TensorSpec(x.shape, x.dtype) for x in args])
    def predict(x: tf.Tensor) -> tf.Tensor:
        for weights in module.weights:
            x = tf.tanh(x @ weights)
        return x

    module.predict = predict
    with tempfile.TemporaryDirectory() as folder:
        tf.saved_model.save(module, folder)
        path.write_bytes(tf.lite.TFLiteConverter.from_saved_model(folder).convert())


def _closed_over(to: str) -> Format:
    """An export of a function that closes over its parameters."""

    def exporter(fun: Callable[..., Any], args: Any, path: pathlib.Path, params: Any) -> Any:
        return getattr(export, f"to_{to}")(lambda x: fun(params, x), args, path)

    return Format(to, by=exporter)


FORMATS = {
    "saved_model": Format("saved_model"),
    "tfjs": Format("tfjs"),
    "onnx": Format("onnx"),
    "onnx float16": Format("onnx", {"compute_dtype": "float16"}, jnp.float16),
    "onnx bfloat16": Format("onnx", {}, jnp.bfloat16),
    "onnx dynamic": Format("onnx", {"quantize": "dynamic"}),
    "onnx int4": Format("onnx", {"quantize": "int4"}),
    "onnx int8": Format("onnx", {"quantize": "int8"}, has_data=True),
    "tflite": Format("tflite"),
    "tflite by TensorFlow": Format("tflite", by=_by_tensorflow),
    **{f"{to} closed over": _closed_over(to) for to in ("saved_model", "tfjs", "onnx", "tflite")},
}

# The features of a layer, whose weights of float32 have 16 MB.
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
    how = FORMATS[to]
    dtype = np.dtype(how.dtype)
    count = max(1, round(megabytes * _MEGABYTE / (dtype.itemsize * _FEATURES**2)))
    rng = np.random.default_rng(0)

    def layer() -> jax.Array:
        return jnp.asarray(
            rng.standard_normal((_FEATURES, _FEATURES), np.float32) / np.sqrt(_FEATURES), dtype
        )

    x = np.ones((1, _FEATURES), dtype)
    data = {"representative_data": [(x,)]} if how.has_data else {}
    exporter = functools.partial(how.exporter, **data)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # What the first export imports and keeps is no part of the second.
        exporter(_predict, (x,), folder / "small", params={"w": layer()})
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


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure_memory",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 400], help="in megabytes")
    parser.add_argument("--formats", choices=FORMATS, nargs="+", default=list(FORMATS))
    parser.add_argument("--one", action="store_true", help="measure in this process")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    if args.one:
        print(json.dumps(measure(args.formats[0], args.sizes[0])))
        return 0
    with performance.recording(args.database, "python -m tools.measure_memory") as record:
        for to in args.formats:
            for size in sorted(args.sizes):
                command = [sys.executable, "-m", "tools.measure_memory", "--one"]
                command += ["--formats", to, "--sizes", str(size)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                cost = Cost(*json.loads(done.stdout.splitlines()[-1]))
                ratio = cost.peak / cost.size
                print(f"{to}, {size} MB: {ratio:.2f} times, {cost.seconds:.0f} s", flush=True)
                program = f"{size:,} MB of parameters"
                record(program, f"{to}, memory / parameters", Measured(ratio, ratio, ratio))
                seconds = cost.seconds
                record(program, f"{to}, time", Measured(seconds, seconds, seconds, "s"))
    return 0


if __name__ == "__main__":
    run(main)
