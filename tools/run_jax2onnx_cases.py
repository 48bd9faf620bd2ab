"""Exports the test cases that come with jax2onnx to ONNX, and counts those that equal JAX.

    python -m tools.run_jax2onnx_cases --database results.sqlite
    python -m tools.run_jax2onnx_cases --case 'conv*' --dtype float64
    python -m tools.run_jax2onnx_cases --shard 3/3    # each third case, from the third on

jax2onnx has to be in this Python (the extra `bench`). A case is a function with shapes or values of
its arguments; a size that is text, such as "B", is symbolic. What JAX itself does not run, with
these arguments or with symbolic sizes, does not count. The exit code is 1 if a case fails.
"""

import argparse
import collections
import functools
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import jax
import jax.export
import jax.numpy as jnp
import numpy as np

from harnesses.evaluation.errors import describe
from harnesses.shards import Shard
from lowering import export
from results.figures import Measured
from tools import performance
from tools.terminal import run

DTYPES = ("float32", "float64")
# What a case may take, in seconds.
_LIMIT = 300
# The size that stands for a symbolic one where JAX runs a case.
_SIZE = 3

EQUAL, NOT_IN_JAX, FAILED = "equal", "JAX does not run it", "failed"


class Outcome(NamedTuple):
    """What came of a case.

    Attributes:
      kind: one of `EQUAL`, `NOT_IN_JAX` and `FAILED`.
      reason: why it is not equal.
    """

    kind: str
    reason: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", default="*", metavar="PATTERN", help="names of cases")
    parser.add_argument("--dtype", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument(
        "--shard",
        type=Shard.parse,
        default=Shard(1, 1),
        metavar="I/N",
        help="each N-th case alone, from the I-th on",
    )
    performance.add_option(parser)
    args = parser.parse_args(argv)
    is_green = True
    with performance.recording(args.database, "python -m tools.run_jax2onnx_cases") as record:
        for dtype in args.dtype:
            counts: collections.Counter[str] = collections.Counter()
            for name, outcome in _outcomes(dtype, args.case, args.shard):
                counts[outcome.kind] += 1
                if outcome.kind != EQUAL:
                    print(f"{name}, {dtype}: {outcome.kind}: {outcome.reason}", flush=True)
            ran = counts[EQUAL] + counts[FAILED]
            is_green &= not counts[FAILED]
            if ran:
                share = 100 * counts[EQUAL] / ran
                print(f"{dtype}: {counts[EQUAL]} of {ran}, {share:.2f}%; {dict(counts)}")
                program = f"jax2onnx's own cases, {dtype}"
                record(program, "ONNX, cases that JAX runs", Measured(ran, ran, ran))
                record(program, "ONNX, of these equal to JAX", Measured(share, share, share, "%"))
    return 0 if is_green else 1


def _outcomes(dtype: str, pattern: str, shard: Shard) -> Iterator[tuple[str, Outcome]]:
    """The cases of a dtype with what came of them, each protected from the others' crashes."""
    context = multiprocessing.get_context("spawn")
    begin, is_done = 0, False
    while not is_done:
        here, there = context.Pipe()
        worker = context.Process(target=_work, args=(there, dtype, pattern, shard, begin))
        worker.start()
        there.close()
        name = ""
        try:
            while True:
                if not here.poll(_LIMIT):
                    yield name, Outcome(FAILED, f"no end after {_LIMIT} s")
                    break
                message = here.recv()
                if message is None:
                    is_done = True
                    break
                if isinstance(message, str):
                    name, begin = message, begin + 1
                else:
                    yield name, Outcome(*message)
        except EOFError:
            yield name, Outcome(FAILED, "the process ended")
        worker.kill()
        worker.join()


def _work(pipe: Connection, dtype: str, pattern: str, shard: Shard, begin: int) -> None:
    """Runs cases from one on in a process of its own: it sends each name, and then the outcome."""
    jax.config.update("jax_enable_x64", dtype == "float64")
    chosen = [(name, case) for name, case in cases(dtype) if fnmatchcase(name, pattern)]
    for name, case in chosen[shard.number - 1 :: shard.total][begin:]:
        pipe.send(name)
        pipe.send(tuple(outcome(case, dtype)))
    pipe.send(None)


def cases(dtype: str) -> list[tuple[str, Mapping[str, Any]]]:
    """The cases of jax2onnx for a dtype, by name; a case may be there with several opsets."""
    from jax2onnx.plugins import plugin_system

    plugin_system.import_all_plugins()
    other = "float64" if dtype == "float32" else "float32"
    found = []
    for registry in (plugin_system.PLUGIN_REGISTRY, plugin_system.EXAMPLE_REGISTRY):
        for source in registry.values():
            metadata = source if isinstance(source, dict) else getattr(source, "metadata", {})
            for case in metadata.get("testcases", ()):
                is_for_other = case.get(f"run_only_f{other.removeprefix('float')}_variant")
                is_left_out = dtype == "float64" and case.get("disable_float64_test")
                if not (is_for_other or is_left_out):
                    found.append((case["testcase"], case))
    return found


def outcome(case: Mapping[str, Any], dtype: str) -> Outcome:
    """Exports a case, verified."""
    try:
        fun = _function(case, dtype)
        args, symbolic = _arguments(case, dtype)
        jax.block_until_ready(jax.jit(fun)(*map(_sample, args)))
        if symbolic is not None:
            jax.eval_shape(fun, *jax.export.symbolic_args_specs(args, symbolic))
    except Exception as error:
        return Outcome(NOT_IN_JAX, describe(error))
    try:
        export.to_onnx(fun, args, polymorphic_shapes=symbolic)
    except Exception as error:
        return Outcome(FAILED, describe(error))
    return Outcome(EQUAL)


def _function(case: Mapping[str, Any], dtype: str) -> Callable[..., Any]:
    fun = case["callable"]
    if hasattr(fun, "instantiate"):  # The constructor of a module, which takes a dtype.
        fun = fun.with_dtype(jnp.dtype(dtype)).instantiate()
    return functools.partial(fun, **case.get("input_params", {}))


def _arguments(case: Mapping[str, Any], dtype: str) -> tuple[tuple[Any, ...], Any]:
    """The arguments of a case, and their symbolic sizes; None if there are none."""
    if "input_values" in case:
        values = case["input_values"]
        values = values if isinstance(values, list | tuple) else [values]
        return tuple(_in_dtype(np.asarray(x), dtype) for x in values), None
    shapes = [x if isinstance(x, list | tuple) else (x,) for x in case.get("input_shapes", ())]
    dtypes = case.get("input_dtypes") or [dtype] * len(shapes)
    sizes = [[_SIZE if isinstance(n, str) else n for n in shape] for shape in shapes]
    args = tuple(
        jax.ShapeDtypeStruct(tuple(size), jax.dtypes.canonicalize_dtype(np.dtype(kind)))
        for size, kind in zip(sizes, dtypes, strict=True)
    )
    if sizes == [list(shape) for shape in shapes]:
        return args, None
    return args, [f"({', '.join(map(str, shape))},)" if shape else "()" for shape in shapes]


def _in_dtype(x: np.ndarray, dtype: str) -> np.ndarray:
    """An array of a case, in the float that is asked for, or in what JAX makes of integers."""
    kind = np.dtype(dtype) if x.dtype in map(np.dtype, DTYPES) else x.dtype
    return x.astype(jax.dtypes.canonicalize_dtype(kind))


def _sample(x: Any) -> np.ndarray:
    if isinstance(x, np.ndarray):
        return x
    numbers = np.random.default_rng(0).normal(size=x.shape)
    return np.abs(numbers).astype(x.dtype) if x.dtype.kind in "bui" else numbers.astype(x.dtype)


if __name__ == "__main__":
    run(main)
