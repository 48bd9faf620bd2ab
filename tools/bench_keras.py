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
from tools import bench, bench_onnx, in_keras, performance
from tools.bench_onnx import Case
from tools.terminal import run

_TARGETS = ("portable", "tf")
# The gradient of a loss of the small convolutional network, by all parameters.
_GRADIENT = "cnn_gradient"
MODELS = (*in_keras.GRAPHS, _GRADIENT)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", choices=MODELS, default=MODELS)
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
                print(f"{program:28}{figure:34}{value}", flush=True)
                record(program, figure, value)
    return 0


def report(name: str, repeats: int, clock: Callable[[], float]) -> Iterator[tuple[str, Measured]]:
    """Measures a model; yields figures and their values."""
    model = in_keras.GRAPHS["cnn" if name == _GRADIENT else name]()
    ours = case(name)
    _check_sizes(name, model, ours)
    args = jax.tree.map(tf.constant, ours.args)
    keras_fun = functools.partial(_keras_gradient if name == _GRADIENT else _keras_results, model)
    runs = {"Keras": _runner(keras_fun, args)}
    variables = jax.tree.map(tf.Variable, ours.params)
    for target in _TARGETS:
        converted = functools.partial(lowering.convert(ours.fun, target=target), variables)
        runs[target] = _runner(converted, args)
    times = bench.time_in_turns(list(runs.values()), repeats, clock)
    of = dict(zip(runs, times.T, strict=True))
    yield "Keras", performance.measured(1e3 * of["Keras"], "ms")
    for target in _TARGETS:
        yield f"graph, {target} / Keras", performance.measured(of[target] / of["Keras"])


def case(name: str) -> Case:
    """A JAX function, its parameters and its inputs: one example, where any number may be."""
    if name in ("gpt_step", "graph_network"):
        return bench_onnx.case(name)
    is_gradient = name == _GRADIENT
    program = bench.gradient_program("cnn", 1) if is_gradient else bench.model_program(name, 1)
    return Case(program.fun, program.args[0], program.args[1:])


def _check_sizes(name: str, model: Any, ours: Case) -> None:
    """Raises an error unless images or tokens are of the size that a Keras model is built for."""
    inputs = ours.args[0]["images"] if name == "vae" else ours.args[0]
    if model.built and tuple(inputs.shape[1:]) != tuple(model.inputs[0].shape[1:]):
        raise ValueError(f"{name} has inputs of {inputs.shape}, but {model.inputs[0].shape}")


def _keras_gradient(model: Any, images: tf.Tensor) -> Any:
    with tf.GradientTape() as tape:
        loss = -tf.reduce_mean(model(images, training=False)[:, 0])
    return tape.gradient(loss, model.trainable_variables)


def _keras_results(model: Any, *args: Any) -> Any:
    # The key of random numbers is for JAX alone.
    if isinstance(args[0], dict) and "key" in args[0]:
        args = (args[0]["images"],)
    return model(*args, training=False)


def _runner(fun: Callable[..., Any], args: Sequence[Any]) -> Callable[[], Any]:
    """Calls the graph of a function and waits for its results, which a CPU does not copy."""
    concrete = tf.function(fun, autograph=False).get_concrete_function(*args)

    def call() -> None:
        for tensor in tf.nest.flatten(concrete(*args)):
            tensor.numpy()

    return call


if __name__ == "__main__":
    run(main)
