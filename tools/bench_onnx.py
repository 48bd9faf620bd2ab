"""Prints how models of ONNX compare with those of jax2onnx: latency, nodes, size and export time.

    python -m tools.bench_onnx --model lstm --repeats 50
    python -m tools.bench_onnx --database results.sqlite    # keeps the figures

jax2onnx has to be in this Python (the extra `bench`). Models run in onnxruntime on one thread, and
take turns; the ratio of their times is the median over the turns.
"""

import argparse
import collections
import pathlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex_core
import numpy as np

from harnesses import models
from harnesses.evaluation.errors import describe
from harnesses.models import gpt
from lowering import export
from lowering.jax_compat import eliminate_dead_code
from results.figures import Measured
from tools import performance
from tools.bench import CLOCKS, time_in_turns

MODELS = (
    "resnet50",
    "mobilenet_v2",
    "vision_transformer",
    "transformer",
    "gpt_step",
    "lstm",
    "whisper_encoder",
)

# The sizes of a decoding step: those of `harnesses.models.gpt`, and how many tokens caches hold.
_GPT = {"vocabulary": 1024, "positions": 256, "layers": 6, "features": 384, "heads": 6}
_TOKENS, _CAPACITY, _POSITION = [[3], [5]], 64, 40


class Case(NamedTuple):
    """A model: a function of parameters and arguments."""

    fun: Callable[..., Any]
    params: Any
    args: tuple[Any, ...]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--size", choices=models.SIZES, default="realistic")
    parser.add_argument("--repeats", type=int, default=20, help="turns of each model")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    for name in args.model:
        command = f"python -m tools.bench_onnx --model {name} --size {args.size}"
        with performance.recording(args.database, command) as record:
            for figure, value in report(case(name, args.size), args.repeats):
                print(f"{name:20}{figure:32}{value}", flush=True)
                record(f"{name}, {args.size}", figure, value)
    return 0


def case(name: str, size: str = "realistic") -> Case:
    """The model of a name; "gpt_step" is one step of a GPT with a cache."""
    if name != "gpt_step":
        model = models.load(name, size)
        return Case(model.apply, model.init(0), (model.make_inputs(1),))
    network = gpt.GPT(**_GPT)
    rng = np.random.default_rng(0)
    shape = len(_TOKENS), _CAPACITY, _GPT["heads"], _GPT["features"] // _GPT["heads"]
    caches = [
        tuple(rng.normal(size=shape).astype(np.float32) for _ in range(2))
        for _ in range(_GPT["layers"])
    ]
    arguments = np.array(_TOKENS, np.int32), caches, np.int32(_POSITION)
    return Case(network.apply, models.load("gpt").init(0), arguments)


def report(of: Case, repeats: int) -> Iterator[tuple[str, str | Measured]]:
    """The figures of a model; those of jax2onnx beside them, unless it does not convert it."""
    leaves = [np.asarray(x) for x in jax.tree.leaves(of.args)]
    with tempfile.TemporaryDirectory() as folder:
        files, seconds = {}, {}
        for name, write in {"lowering": _by_lowering, "jax2onnx": _by_jax2onnx}.items():
            path = pathlib.Path(folder, name, "model.onnx")
            path.parent.mkdir()
            start = time.perf_counter()
            try:
                write(of, path)
            except Exception as error:
                if name == "lowering":
                    raise
                yield name, f"is not converted: {describe(error)}"
                continue
            files[name], seconds[name] = path, time.perf_counter() - start
        for name, path in files.items():
            yield f"ONNX, export, {name}", _once(seconds[name], "s")
            yield f"ONNX, nodes, {name}", _once(count_nodes(path), "nodes")
            yield f"ONNX, files, {name}", _once(_bytes(path) / 1e6, "MB")
        runs = {}
        for name, path in files.items():
            try:
                runs[name] = _in_onnxruntime(path, leaves)
            except Exception as error:
                if name == "lowering":
                    raise
                yield name, f"is refused by onnxruntime: {describe(error)}"
        times = time_in_turns(list(runs.values()), repeats, CLOCKS["processor"])
        for name, of_model in zip(runs, times.T, strict=True):
            yield f"ONNX, latency, {name}", performance.measured(1e3 * of_model, "ms")
        if len(runs) > 1:
            ratio = times[:, 0] / times[:, 1]
            yield "ONNX, lowering / jax2onnx", performance.measured(ratio)


def _once(value: float, unit: str) -> Measured:
    return performance.measured(np.array([value]), unit)


def count_nodes(path: pathlib.Path) -> int:
    """How many nodes a model has, in all of its graphs and functions."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    graphs: collections.deque[Any] = collections.deque([model.graph, *model.functions])
    count = 0
    while graphs:
        graph = graphs.popleft()
        count += len(graph.node)
        graphs += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]
    return count


def _by_lowering(of: Case, path: pathlib.Path) -> None:
    export.to_onnx(of.fun, of.args, params=of.params, path=path, verify=False)


def _by_jax2onnx(of: Case, path: pathlib.Path) -> None:
    """Writes a model by jax2onnx; where it fails to trace one, it gets what JAX has traced."""
    from jax2onnx import to_onnx

    leaves, tree = jax.tree.flatten(of.args)

    def function(*arrays: Any) -> list[Any]:
        return jax.tree.leaves(of.fun(of.params, *jax.tree.unflatten(tree, arrays)))

    def traced(*arrays: Any) -> list[Any]:
        return jex_core.jaxpr_as_fun(program)(*arrays)

    program = eliminate_dead_code(jax.make_jaxpr(function)(*leaves))
    specs = [jax.ShapeDtypeStruct(np.shape(x), np.asarray(x).dtype) for x in leaves]
    try:
        to_onnx(function, specs, return_mode="file", output_path=str(path))
    except Exception:
        to_onnx(traced, specs, return_mode="file", output_path=str(path))


def _in_onnxruntime(path: pathlib.Path, leaves: Sequence[np.ndarray]) -> Callable[[], Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    given = dict(zip([x.name for x in session.get_inputs()], leaves, strict=True))
    return lambda: session.run(None, given)


def _bytes(path: pathlib.Path) -> int:
    """The size of a file and of those beside it, which have its weights."""
    return sum(file.stat().st_size for file in path.parent.iterdir())


if __name__ == "__main__":
    sys.exit(main())
