"""Prints how fast whole models are lowered and run, compared with `jax.jit` in the same process.

    python -m tools.bench --model resnet50 --target tf --repeats 40
    python -m tools.bench --model lstm --target tf --without "contract ahead" "widen steps"
    python -m tools.bench --model lstm --target tf portable
    python -m tools.bench --database results.sqlite      # keeps the figures; see tools.performance

The implementations take turns, and a ratio is the median over the turns, so that other work on the
machine disturbs all of them alike. Parameters are arguments of `jax.jit` and variables of
`tf.function`, as they are in most programs. Times include reading the result. The targets after the
first one are compared with it, too.
"""

import argparse
import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import jax
import numpy as np
import tensorflow as tf

import lowering
from harnesses import models
from lowering.ops import tuning
from lowering.passes import pipeline
from lowering.targets import TARGETS
from results.figures import Measured
from tools import performance

# Choices of ops for speed alone: `ops.tuning` decides them, and this is the decision without them.
_CHOICES: dict[str, Callable[..., bool]] = {
    "transposes_by_einsum": lambda *_: False,
    "multiplies_by_eigen": lambda *_: False,
    "rectifies_by_select": lambda *_: False,
}
# Those, and the passes that are for speed alone on exact targets.
WITHOUT = (
    *_CHOICES,
    "flatten calls",
    "hoist invariants",
    "unroll short scans",
    "contract ahead",
    "widen steps",
    "fuse ops",
    "mark operands",
)
# Whether XLA compiles.
MODES = {"graph": False, "compiled": True}
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
# Sizes of inputs, where the usual ones take too long in large batches.
_SIZES = {"resnet50": {"height": 96, "width": 96}}
# After a call of the other library a library is slow, as its own threads sleep and those of the
# other do not yet. The first fifth of each turn is therefore not measured.
_TURN_SECONDS = 0.2


@dataclasses.dataclass(frozen=True)
class Program:
    """A JAX function to measure, and its arguments as pytrees of numpy arrays."""

    name: str
    fun: Callable[..., Any]
    args: tuple[Any, ...]


def model_program(name: str, batch: int) -> Program:
    """Returns the model called `name`, with random parameters and inputs."""
    model = models.load(name)
    sizes = {"batch": batch} if "batch" in model.dimensions else {}
    inputs = model.make_inputs(1, **sizes, **_SIZES.get(name, {}))
    return Program(f"{name}, batch {batch}", model.apply, (model.init(0), inputs))


def gradient_program(name: str, batch: int) -> Program:
    """Returns the gradient by all parameters, if the first result of each example is to be large.

    It is that of a loss where the model called `name` returns log-probabilities.
    """
    program = model_program(name, batch)

    def loss(params: Any, inputs: Any) -> Any:
        return -program.fun(params, inputs)[:, 0].mean()

    return Program(f"{name}_gradient, batch {batch}", jax.grad(loss), program.args)


def random_normal(keys: Sequence[jax.Array]) -> list[jax.Array]:
    """Draws normal numbers of shape [256, 256] once for each of the keys, uint32 [2]."""
    keys = [jax.random.wrap_key_data(key, impl="threefry2x32") for key in keys]
    return [jax.random.normal(key, (256, 256)) for key in keys]


def random_program(count: int = 1) -> Program:
    """Returns a function that calls `jax.random.normal` `count` times."""
    keys = [np.array([0, i], np.uint32) for i in range(count)]
    return Program("random_normal", random_normal, (keys,))


def _fresh(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that JAX has not traced before."""
    return lambda *args: fun(*args)


def concrete(program: Program, target: str, **options: Any) -> Any:
    """A program as a graph, a concrete function."""
    specs = jax.tree.map(lambda x: tf.TensorSpec(x.shape, x.dtype), program.args)
    converted = lowering.convert(_fresh(program.fun), target=target, **options)
    return tf.function(converted, autograph=False).get_concrete_function(*specs)


def lowering_seconds(program: Program, target: str, repeats: int) -> tuple[float, float]:
    """Returns the median seconds from JAX function to TensorFlow graph, and those of JAX's tracing.

    The first number excludes the second. What JAX and TensorFlow do only once in a process is not
    measured. Both are processor time, on which other work on the machine has little influence.
    """
    lowered, traced = [], []
    for _ in range(repeats + 1):
        start = time.process_time()
        jax.jit(_fresh(program.fun)).trace(*program.args)
        middle = time.process_time()
        concrete(program, target)
        end = time.process_time()
        traced.append(middle - start)
        lowered.append(end - middle - traced[-1])
    return statistics.median(lowered[1:]), statistics.median(traced[1:])


def count_nodes(program: Program, target: str) -> int:
    """Returns how many nodes the graph of a program has, its library functions included."""
    graph_def = concrete(program, target).graph.as_graph_def()
    return len(graph_def.node) + sum(len(f.node_def) for f in graph_def.library.function)


def time_in_turns(
    runs: Sequence[Callable[[], Any]], repeats: int, clock: Callable[[], float]
) -> np.ndarray:
    """Returns the seconds per call of each function in each turn, [repeats, functions].

    Every other turn is in reverse order, as a function is slower after some than after others.
    """
    calls = []
    for run in runs:
        run()
        start = clock()
        run()
        calls.append(max(1, round(_TURN_SECONDS / (clock() - start))))

    seconds = np.empty((repeats, len(runs)))
    order = list(enumerate(runs))
    for turn in range(repeats):
        for i, run in order:
            for _ in range(1 + calls[i] // 4):
                run()
            start = clock()
            for _ in range(calls[i]):
                run()
            seconds[turn, i] = (clock() - start) / calls[i]
        order.reverse()
    return seconds


def run_times(
    program: Program, targets: Sequence[str], repeats: int, clock: Callable[[], float]
) -> dict[str, np.ndarray]:
    """Returns the seconds per call in each turn of `jax.jit` and of each mode on each target."""
    jax_args = jax.device_put(program.args)
    *params, inputs = program.args
    variables = jax.tree.map(tf.Variable, params)
    inputs = jax.tree.map(tf.constant, inputs)
    jitted = jax.jit(program.fun)
    runs: dict[str, Callable[[], Any]] = {}
    runs["jax.jit"] = lambda: jax.block_until_ready(jitted(*jax_args))
    for target in targets:
        on_variables = functools.partial(lowering.convert(program.fun, target=target), *variables)
        for mode, compiled in MODES.items():
            function = tf.function(on_variables, autograph=False, jit_compile=compiled)
            concrete = function.get_concrete_function(inputs)
            runs[f"{mode}, {target}"] = functools.partial(run_and_read, concrete, inputs)
    seconds = time_in_turns(list(runs.values()), repeats, clock)
    return dict(zip(runs, seconds.T, strict=True))


def run_and_read(function: Callable[..., Any], inputs: Any) -> None:
    """Calls a function of TensorFlow and waits for its results, which a CPU does not copy."""
    for tensor in tf.nest.flatten(function(inputs)):
        tensor.numpy()


def report(
    program: Program, targets: Sequence[str], repeats: int, clock: Callable[[], float]
) -> list[tuple[str, str, str | Measured]]:
    """Measures a program; returns rows of program, figure and value."""
    rows: list[tuple[str, str | Measured]] = []
    for target in targets:
        seconds, tracing = lowering_seconds(program, target, repeats=3)
        rows.append((f"lowering, {target}", f"{seconds:.3f} s (and tracing {tracing:.3f} s)"))
        rows.append((f"nodes, {target}", str(count_nodes(program, target))))
    if program.fun is random_normal:
        rows += [(f"nodes of each further call, {t}", str(_nodes_per_call(t))) for t in targets]
    times = run_times(program, targets, repeats, clock)
    rows.append(("jax.jit", performance.measured(1e3 * times["jax.jit"], "ms")))
    for name, of_mode in times.items():
        if name != "jax.jit":
            rows.append((f"{name} / jax.jit", performance.measured(of_mode / times["jax.jit"])))
    for target in targets[1:]:
        for mode in MODES:
            ratio = times[f"{mode}, {target}"] / times[f"{mode}, {targets[0]}"]
            figure = f"{mode}, {target} / {targets[0]}"
            rows.append((figure, performance.measured(ratio)))
    return [(program.name, *row) for row in rows]


def report_gains(
    program: Program,
    choices: Sequence[str],
    target: str,
    repeats: int,
    clock: Callable[[], float],
) -> list[tuple[str, str, str]]:
    """Measures time and nodes without each choice for speed, relative to those with all."""
    *params, inputs = program.args
    variables = jax.tree.map(tf.Variable, params)
    inputs = jax.tree.map(tf.constant, inputs)

    def run(compiled: bool) -> tuple[Callable[[], Any], int]:
        fun = functools.partial(lowering.convert(_fresh(program.fun), target=target), *variables)
        function = tf.function(fun, autograph=False, jit_compile=compiled)
        concrete = function.get_concrete_function(inputs)
        return functools.partial(run_and_read, concrete, inputs), count_nodes(program, target)

    rows = []
    for mode, compiled in MODES.items():
        runs = [run(compiled)]
        for choice in choices:
            with _without(choice):
                runs.append(run(compiled))
        seconds = time_in_turns([call for call, _ in runs], repeats, clock)
        for choice, (_, nodes), times in zip(choices, runs[1:], seconds.T[1:], strict=True):
            ratio = np.median(times / seconds[:, 0])
            value = f"{ratio:.2f} (nodes {nodes / runs[0][1]:.2f})"
            rows.append((program.name, f"{mode} without {choice}", value))
    return rows


def _without(choice: str) -> contextlib.AbstractContextManager[Any]:
    """A context without one of the choices for speed."""
    if choice in _CHOICES:
        return mock.patch.object(tuning, choice, _CHOICES[choice])
    return pipeline.without(choice)


def _nodes_per_call(target: str) -> float:
    """How many nodes each further call of `jax.random.normal` adds, without its arguments."""

    def added(fun):
        one, three = (dataclasses.replace(random_program(n), fun=fun) for n in (1, 3))
        return (count_nodes(three, target) - count_nodes(one, target)) / 2

    return added(random_normal) - added(lambda keys: keys)


def main(argv: Sequence[str] | None = None) -> None:
    """Runs the command line."""
    names = ("resnet50", "transformer", "lstm", "random_normal")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--model", nargs="+", choices=(*models.NAMES, "random_normal"), default=names
    )
    parser.add_argument("--target", nargs="+", choices=TARGETS, default=("tf", "xla"))
    parser.add_argument("--repeats", type=int, default=20, help="turns of each implementation")
    parser.add_argument(
        "--batch", nargs="+", type=int, default=(1, 16), help="examples in the inputs of a model"
    )
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="processor time is the sum over all threads, and says more on a busy machine",
    )
    parser.add_argument(
        "--without",
        nargs="*",
        choices=WITHOUT,
        help="print what the program takes without each of these choices, or of all, instead",
    )
    performance.add_option(parser)
    args = parser.parse_args(argv)

    print(f"jax {jax.__version__}, tensorflow {tf.__version__}, {args.clock} time", flush=True)
    for name in args.model:
        is_random = name == "random_normal"
        programs = [random_program()] if is_random else [model_program(name, n) for n in args.batch]
        for program in programs:
            command = f"python -m tools.bench --model {name} --target {' '.join(args.target)}"
            command += "" if args.clock == "wall" else f" --clock {args.clock}"
            with performance.recording(args.database, command) as record:
                for program_name, figure, value in _report(program, args):
                    print(f"{program_name:24}{figure:34}{value}", flush=True)
                    record(program_name, figure, value)


def _report(
    program: Program, args: argparse.Namespace
) -> Iterator[tuple[str, str, str | Measured]]:
    """Rows of program, figure and value, as the command line asks for them."""
    clock = CLOCKS[args.clock]
    if args.without is None:
        yield from report(program, args.target, args.repeats, clock)
        return
    for target in args.target:
        choices = args.without or WITHOUT
        yield from report_gains(program, choices, target, args.repeats, clock)


if __name__ == "__main__":
    main()
