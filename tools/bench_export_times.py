"""Prints how long exports to ONNX take beside those to TF Lite, and how large the files are.

    python -m tools.bench_export_times --program nuts
    python -m tools.bench_export_times --database results.sqlite    # keeps the figures

The programs are those whose exports take longest: NUTS of blackjax, a simulation of MJX, a GPT that
draws its tokens, and ResNet-50. Exports are verified, and take turns in one process; a first one of
each, of a small function, loads the libraries.
"""

import argparse
import functools
import importlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from harnesses import models
from lowering import export
from results.figures import Measured
from tools import performance
from tools.bench import CLOCKS

EXPORTERS: dict[str, Callable[..., Any]] = {"ONNX": export.to_onnx, "TF Lite": export.to_tflite}

# Two links that fall from a hinge.
PENDULUM = """
<mujoco>
  <option timestep="0.01" iterations="4"/>
  <worldbody>
    <body pos="0 0 1">
      <joint name="hinge" type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.05" contype="0" conaffinity="0"/>
      <body pos="0.4 0 0">
        <joint type="hinge" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.04" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
_STEPS = 4


class Program(NamedTuple):
    """What is exported.

    Attributes:
      fun: the function.
      args: its arguments, without parameters.
      options: those of the export.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    options: Mapping[str, Any] = {}


def nuts() -> Program:
    """A chain of the No-U-Turn sampler on a normal density."""
    blackjax: Any = importlib.import_module("blackjax")

    def log_density(x: jax.Array) -> jax.Array:
        return -0.5 * jnp.sum(x**2) - 0.1 * x[0] * x[1]

    def sample(start: jax.Array, words: jax.Array) -> jax.Array:
        algorithm = blackjax.nuts(log_density, 0.3, jnp.ones(2), max_num_doublings=3)

        def step(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            state, _ = algorithm.step(key, state)
            return state, state.position

        keys = jax.random.split(jax.random.wrap_key_data(words), _STEPS)
        return jax.lax.scan(step, algorithm.init(start), keys)[1]

    args = np.array([0.5, -0.5], np.float32), np.array([1, 2], np.uint32)
    return Program(sample, args, {"tolerance": 1e-3})


def mjx() -> Program:
    """Steps of a double pendulum."""
    mujoco: Any = importlib.import_module("mujoco")
    simulator: Any = importlib.import_module("mujoco.mjx")
    model = simulator.put_model(mujoco.MjModel.from_xml_string(PENDULUM))

    def simulate(velocity: jax.Array) -> jax.Array:
        def step(data: Any, _: None) -> tuple[Any, jax.Array]:
            data = simulator.step(model, data)
            return data, data.qpos

        start = simulator.make_data(model).replace(qvel=velocity)
        return jax.lax.scan(step, start, length=_STEPS)[1]

    return Program(simulate, (np.full(2, -0.5, np.float32),), {"tolerance": 1e-3})


def of_model(name: str) -> Program:
    """A model of the evaluation in its realistic size."""
    model = models.load(name, "realistic")
    return Program(model.apply, (model.make_inputs(1),), {"params": model.init(0)})


PROGRAMS: dict[str, Callable[[], Program]] = {
    "nuts": nuts,
    "mjx": mjx,
    "gpt": functools.partial(of_model, "gpt"),
    "resnet50": functools.partial(of_model, "resnet50"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--repeats", type=int, default=3, help="exports of each program")
    parser.add_argument(
        "--clock",
        choices=CLOCKS,
        default="wall",
        help="processor time is the sum over all threads, and says more on a busy machine",
    )
    performance.add_option(parser)
    args = parser.parse_args(argv)
    for name in args.program:
        command = f"python -m tools.bench_export_times --program {name} --clock {args.clock}"
        with performance.recording(args.database, command) as record:
            for figure, value in report(PROGRAMS[name](), args.repeats, CLOCKS[args.clock]):
                print(f"{name:12}{figure:28}{value}", flush=True)
                record(f"export of {name}", figure, value)
    return 0


def report(
    program: Program, repeats: int, clock: Callable[[], float]
) -> Iterator[tuple[str, Measured]]:
    """The times of exports by a clock, the sizes of files, and the ratios of both."""
    times: dict[str, list[float]] = {name: [] for name in EXPORTERS}
    sizes: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, exporter in EXPORTERS.items():
            exporter(jnp.tanh, (np.ones(4, np.float32),), pathlib.Path(folder, name))
        for turn in range(repeats):
            for name, exporter in EXPORTERS.items():
                path = pathlib.Path(folder, f"{name} {turn}")
                # What JAX has traced and compiled for one export is not there for the next.
                jax.clear_caches()
                start = clock()
                exporter(program.fun, program.args, path, **program.options)
                times[name].append(clock() - start)
                sizes[name] = path.stat().st_size
    for name in EXPORTERS:
        yield f"{name}, time", performance.measured(np.array(times[name]), "s")
        yield f"{name}, file", performance.measured(np.array([sizes[name] / 1e6]), "MB")
    of_turns = np.array(times["ONNX"]) / np.array(times["TF Lite"])
    yield "time, ONNX / TF Lite", performance.measured(of_turns)
    yield "file, ONNX / TF Lite", performance.measured(np.array([sizes["ONNX"] / sizes["TF Lite"]]))


if __name__ == "__main__":
    sys.exit(main())
