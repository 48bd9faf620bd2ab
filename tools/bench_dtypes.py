"""Prints how exported models in 16 bits, and products of int8, compare with the same in float32.

    python -m tools.bench_dtypes --model transformer --repeats 50
    python -m tools.bench_dtypes --database results.sqlite    # keeps the figures

A model in 16 bits has its parameters in 16 bits and computes in their dtype. It takes and returns
float32. Models run in LiteRT and onnxruntime on one thread, and take turns with that in float32;
the ratio of their times is the median over the turns.
"""

import argparse
import functools
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
from tools.bench import CLOCKS, time_in_turns
from tools.bench_exports import count_ops, in_litert, in_onnxruntime
from tools.bench_onnx import count_nodes

MODELS = ("cnn", "mobilenet_v2", "vision_transformer", "transformer", "lstm", "whisper_encoder")
DTYPES = ("bfloat16", "float16")

# The sizes of the product of int8: rows, and rows and columns of the weights.
_ROWS, _WIDTH = 8, 1024

# A figure, and its value.
Row = tuple[str, Measured]


class Case(NamedTuple):
    """A program: a function of parameters and one array."""

    fun: Callable[[Any, Any], Any]
    params: Any
    x: np.ndarray


class Format(NamedTuple):
    """A format of models: how one is written, counted and run."""

    write: Callable[[Case, pathlib.Path], None]
    count: Callable[[pathlib.Path], int]
    run: Callable[[pathlib.Path, np.ndarray], Callable[[], Any]]


def _to_tflite(of: Case, path: pathlib.Path) -> None:
    export.to_tflite(of.fun, (of.x,), params=of.params, path=path, verify=False)


def _to_onnx(of: Case, path: pathlib.Path) -> None:
    export.to_onnx(of.fun, (of.x,), params=of.params, path=path, verify=False)


def _count_ops(path: pathlib.Path) -> int:
    return count_ops(path.read_bytes()).total()


FORMATS: Mapping[str, Format] = {
    "TF Lite": Format(_to_tflite, _count_ops, in_litert),
    "ONNX": Format(_to_onnx, count_nodes, in_onnxruntime),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", nargs="+", choices=[*MODELS, "product"])
    parser.add_argument("--size", choices=models.SIZES, default="realistic")
    parser.add_argument("--repeats", type=int, default=20, help="turns of each model")
    performance.add_option(parser)
    args = parser.parse_args(argv)
    for name in args.model or [*MODELS, "product"]:
        command = f"python -m tools.bench_dtypes --model {name} --size {args.size}"
        by_dtype = products() if name == "product" else _model(name, args.size)
        with performance.recording(args.database, command) as record:
            for figure, value in report(by_dtype, args.repeats):
                print(f"{name:20}{figure:40}{value}", flush=True)
                record(f"{name}, {args.size}", figure, value)
    return 0


def report(by_dtype: Mapping[str, Case], repeats: int) -> Iterator[Row]:
    """The figures of a program in several dtypes beside those of the first, which is float32."""
    first, *others = by_dtype
    for title, form in FORMATS.items():
        with tempfile.TemporaryDirectory() as folder:
            paths = {dtype: pathlib.Path(folder, dtype) for dtype in by_dtype}
            for dtype, of in by_dtype.items():
                form.write(of, paths[dtype])
            runs = [form.run(paths[dtype], of.x) for dtype, of in by_dtype.items()]
            seconds = time_in_turns(runs, repeats, CLOCKS["processor"]).T
            yield f"{title}, {first}", performance.measured(1e3 * seconds[0], "ms")
            for dtype, of_dtype in zip(others, seconds[1:], strict=True):
                for what, measure in {"nodes": form.count, "file": _bytes}.items():
                    ratio = measure(paths[dtype]) / measure(paths[first])
                    yield f"{title}, {what}, {dtype} / {first}", _once(ratio)
                yield f"{title}, {dtype} / {first}", performance.measured(of_dtype / seconds[0])
            for dtype, of in by_dtype.items():
                ratio = _bytes(paths[dtype]) / sum(x.nbytes for x in jax.tree.leaves(of.params))
                yield f"{title}, file / weights, {dtype}", _once(ratio)


def _model(name: str, size: str) -> dict[str, Case]:
    """A model of `harnesses.models` in float32 and in 16 bits."""
    model = models.load(name, size)
    return in_dtypes(Case(model.apply, model.init(0), model.make_inputs(1)))


def in_dtypes(of: Case) -> dict[str, Case]:
    """A program in float32, and in 16 bits by its parameters and its array."""

    def compute(dtype: str, params: Any, x: Any) -> Any:
        return _cast(of.fun(params, _cast(x, dtype)), "float32")

    return {
        dtype: Case(functools.partial(compute, dtype), _cast(of.params, dtype), of.x)
        for dtype in ("float32", *DTYPES)
    }


def _cast(tree: Any, dtype: str) -> Any:
    """Arrays whose floats have another dtype."""
    return jax.tree.map(
        lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree
    )


def products() -> dict[str, Case]:
    """The product of rows and weights in float32, and in int8 with sums in int32."""
    rng = np.random.default_rng(0)
    x, weights = (
        rng.integers(-128, 128, size).astype(np.int8)
        for size in ((_ROWS, _WIDTH), (_WIDTH, _WIDTH))
    )

    def in_float32(weights: Any, x: Any) -> Any:
        return x @ weights

    def in_int8(weights: Any, x: Any) -> Any:
        return jnp.matmul(x, weights, preferred_element_type=jnp.int32)

    return {
        "float32": Case(in_float32, weights.astype(np.float32), x.astype(np.float32)),
        "int8": Case(in_int8, weights, x),
    }


def _once(value: float) -> Measured:
    return performance.measured(np.array([value]))


def _bytes(path: pathlib.Path) -> int:
    return path.stat().st_size


if __name__ == "__main__":
    sys.exit(main())
