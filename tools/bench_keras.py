"""Prints how fast graphs of converted models are, compared with the same models written in Keras.

    python -m tools.bench_keras --model transformer --repeats 20
    python -m tools.bench_keras --database results.sqlite   # keeps the figures

Both are graphs that TensorFlow runs without XLA; weights are variables. The models take turns, and
a ratio is the median over the turns, below 1 where ours is faster.
"""

import argparse
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import tensorflow as tf

import lowering
from results.figures import Measured
from tools import bench, in_keras, performance
from tools.terminal import run

_TARGETS = ("portable", "tf")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = tuple(in_keras.GRAPHS)
    parser.add_argument("--model", nargs="+", choices=models, default=models)
    parser.add_argument("--repeats", type=int, default=20, help="turns of each model")
    parser.add_argument(
        "--clock",
        choices=bench.CLOCKS,
        default="wall",
        help="processor time is the sum over all threads, and says more on a busy machine",
    )
    performance.add_option(parser)
    args = parser.parse_args(argv)
    for name in args.model:
        command = f"python -m tools.bench_keras --model {name} --clock {args.clock}"
        with performance.recording(args.database, command) as record:
            program = f"{name}, graphs"
            for figure, value in report(name, args.repeats, bench.CLOCKS[args.clock]):
                print(f"{program:24}{figure:34}{value}", flush=True)
                record(program, figure, value)
    return 0


def report(name: str, repeats: int, clock: Callable[[], float]) -> Iterator[tuple[str, Measured]]:
    """Measures a model; yields figures and their values."""
    model = in_keras.GRAPHS[name]()
    fun, params, inputs = _program(name, model)
    x = tf.constant(inputs)
    runs = {"Keras": _runner(functools.partial(model, training=False), x)}
    variables = jax.tree.map(tf.Variable, params)
    for target in _TARGETS:
        converted = functools.partial(lowering.convert(fun, target=target), variables)
        runs[target] = _runner(converted, x)
    times = bench.time_in_turns(list(runs.values()), repeats, clock)
    of = dict(zip(runs, times.T, strict=True))
    yield "Keras", performance.measured(1e3 * of["Keras"], "ms")
    for target in _TARGETS:
        yield f"graph, {target} / Keras", performance.measured(of[target] / of["Keras"])


def _program(name: str, model: Any) -> tuple[Callable[..., Any], Any, Any]:
    """A JAX function of parameters and inputs, and these, of the sizes of a Keras model."""
    program = bench.models.load(name)
    sizes = {"batch": 1} if "batch" in program.dimensions else {}
    inputs = program.make_inputs(1, **sizes)
    if tuple(inputs.shape[1:]) != tuple(model.inputs[0].shape[1:]):
        raise ValueError(f"{name} has inputs of {inputs.shape}, but {model.inputs[0].shape}")
    return program.apply, program.init(0), inputs


def _runner(fun: Callable[..., Any], x: Any) -> Callable[[], Any]:
    concrete = tf.function(fun, autograph=False).get_concrete_function(x)
    return functools.partial(bench.run_and_read, concrete, x)


if __name__ == "__main__":
    run(main)
