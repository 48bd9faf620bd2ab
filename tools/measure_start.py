"""Measures what a process takes before its programs are fast, and what an eager call takes.

    python -m tools.measure_start --database results.sqlite

Each turn is a process of its own, in CPU time: the import of this package after those of JAX and
TensorFlow, its first conversion, the second one of an equal function, and eager calls of a network
of two layers beside calls of the `tf.function` that people would write. The bytecode of all modules
is cached, as it is where the package is installed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import numpy as np

from tools import performance
from tools.terminal import run

_PROGRAM = "start of a process"
_TURN = """
import gc, json, statistics, time
import jax, jax.numpy as jnp, numpy as np, tensorflow as tf

rng = np.random.default_rng(0)
w, v = (rng.normal(size=size).astype(np.float32) for size in ((64, 64), (64, 8)))
x = tf.constant(rng.normal(size=(4, 64)).astype(np.float32))
made = lambda: lambda x: jnp.tanh(x @ w) @ v + 1
by_hand = tf.function(lambda x: tf.tanh(x @ w) @ v + 1)
jax.jit(made()).trace(x.numpy()), by_hand(x)

def seconds(fun, calls=1):
    gc.collect()  # What others have left is not looked through meanwhile.
    start = time.process_time()
    for _ in range(calls):
        fun()
    return (time.process_time() - start) / calls

def importing():
    import lowering

def convert():
    converted = lowering.convert(made())
    tf.function(converted, autograph=False).get_concrete_function(x)

found = {"import": seconds(importing)}
import lowering
found["first"], found["second"] = seconds(convert), seconds(convert)
eager = lowering.convert(made())
eager(x)
ratios = [seconds(lambda: eager(x), 100) / seconds(lambda: by_hand(x), 100) for _ in range(9)]
found["ratio"] = statistics.median(ratios)
print(json.dumps(found))
"""


def turn(cache: str) -> dict[str, float]:
    """What one process takes: seconds, and how many times as long an eager call."""
    env = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "TF_CPP_MIN_LOG_LEVEL": "3"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    out = subprocess.run(
        [sys.executable, "-c", _TURN], env=env, check=True, capture_output=True, text=True
    )
    return json.loads(out.stdout.splitlines()[-1])


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7, help="processes")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as cache:
        turn(cache)  # It writes the bytecode.
        turns = [turn(cache) for _ in range(args.repeats)]
    of = {name: np.array([found[name] for found in turns]) for name in turns[0]}
    with performance.recording(args.database, "python -m tools.measure_start") as record:
        for figure, values, unit in (
            ("import of lowering", of["import"], "s"),
            ("first conversion beyond the second", of["first"] - of["second"], "s"),
            ("second conversion", of["second"], "s"),
            ("eager call of two layers / tf.function", of["ratio"], ""),
        ):
            measured = performance.measured(values, unit)
            print(f"{figure:50}{measured}")
            record(_PROGRAM, figure, measured)
    return 0


if __name__ == "__main__":
    run(main)
