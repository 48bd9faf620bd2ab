"""Prints how large and how fast exported models are, compared with other ways to such a file.

    python -m tools.bench_exports --model mobilenet_v2 --repeats 20
    python -m tools.bench_exports --jax2onnx PYTHON
    python -m tools.bench_exports --database results.sqlite   # keeps the figures

TF Lite: the same model written in Keras and converted by TensorFlow, and JAX's native serialization
where that converts. ONNX: jax2onnx, if there is a Python that has it. TF.js by WebAssembly in
Chromium, if there is one: the model written in Keras. All run on one thread; the models take turns,
and a ratio is the median over the turns. `bench_decoding` adds the rows of a language model, and
Fourier transforms of ONNX are compared with products with matrices.
"""

import argparse
import collections
import contextlib
import functools
import io
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from harnesses.browser import Browser
from harnesses.evaluation.converters import CONVERTERS, chromium, jax2onnx, onnx, tfjs, tflite
from harnesses.evaluation.errors import describe
from harnesses.evaluation.program import Case, Program
from lowering import export
from lowering.export.tfjs import graph_model
from lowering.rules import fft
from results.figures import Measured
from tools import bench_decoding, in_keras, performance
from tools.bench import CLOCKS, time_in_turns

# How often TF.js runs a model in a turn.
_CALLS = 5

# The rows of a language model, and of Fourier transforms.
DECODING, FOURIER = "decoding", "fourier"

# How many rows of which length are transformed.
_TRANSFORMS = ((64, 1024), (1, 4096), (64, 4096))

Row = tuple[str, str | Measured]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    models = tuple(in_keras.MODELS)
    parser.add_argument("--model", nargs="+", choices=models, default=models)
    parser.add_argument("--repeats", type=int, default=20, help="turns of each model")
    formats = (*FORMATS, DECODING, FOURIER)
    parser.add_argument("--format", nargs="+", choices=formats, default=formats)
    parser.add_argument(
        "--jax2onnx", type=pathlib.Path, metavar="PYTHON", help="a Python that has jax2onnx"
    )
    parser.add_argument(
        "--litert-torch", type=pathlib.Path, metavar="PYTHON", help="a Python that has litert-torch"
    )
    performance.add_option(parser)
    args = parser.parse_args(argv)
    if args.jax2onnx is not None:
        os.environ[jax2onnx.PYTHON] = str(args.jax2onnx)
    for name in args.model:
        for kind in (kind for kind in args.format if kind in FORMATS):
            command = f"python -m tools.bench_exports --model {name} --format {kind}"
            with performance.recording(args.database, command) as record:
                for figure, value in FORMATS[kind](name, args.repeats):
                    print(f"{name:16}{figure:44}{value}", flush=True)
                    record(name, figure, value)
    if DECODING in args.format:
        command = f"python -m tools.bench_exports --format {DECODING}"
        with performance.recording(args.database, command) as record:
            for figure, value in bench_decoding.report(args.repeats, args.litert_torch):
                print(f"{'decoder':16}{figure:44}{value}", flush=True)
                record("decoder", figure, value)
    if FOURIER in args.format:
        command = f"python -m tools.bench_exports --format {FOURIER}"
        with performance.recording(args.database, command) as record:
            for figure, value in report_fourier(args.repeats):
                print(f"{'fourier':16}{figure:44}{value}", flush=True)
                record("fourier", figure, value)
    return 0


def report_tflite(name: str, repeats: int) -> Iterator[Row]:
    """Compares files of TF Lite."""
    program = _program(name)
    with tempfile.TemporaryDirectory() as path:
        files = {
            "lowering": _written("tflite", program, pathlib.Path(path, "lowering")) / tflite.FILE,
            "Keras": pathlib.Path(path, "keras.tflite"),
        }
        converter = tf.lite.TFLiteConverter.from_keras_model(in_keras.MODELS[name]())
        with contextlib.redirect_stdout(io.StringIO()):  # Keras prints all variables of a model.
            files["Keras"].write_bytes(converter.convert())
        native = pathlib.Path(path, "native")
        if reason := _failure("native_tflite", program, native):
            yield "TF Lite, JAX native", reason
        else:
            files["JAX native"] = native / tflite.FILE
        ours, theirs = (files[key].stat().st_size for key in ("lowering", "Keras"))
        yield "TF Lite, file, lowering / Keras", performance.measured(np.array([ours / theirs]))
        for key, file in files.items():
            yield f"TF Lite, ops, {key}", _counted(count_ops(file.read_bytes()))
        inputs = program.model.make_inputs(1)
        runs = {key: in_litert(file, inputs) for key, file in files.items()}
        yield from _ratios("TF Lite", runs, repeats)


def report_onnx(name: str, repeats: int) -> Iterator[Row]:
    """Compares files of ONNX."""
    program = _program(name)
    with tempfile.TemporaryDirectory() as path:
        files = {"lowering": _written("onnx", program, pathlib.Path(path, "lowering")) / onnx.FILE}
        other = pathlib.Path(path, "jax2onnx")
        if reason := CONVERTERS["jax2onnx"].missing() or _failure("jax2onnx", program, other):
            yield "ONNX, jax2onnx", reason
        else:
            files["jax2onnx"] = other / onnx.FILE
        inputs = program.model.make_inputs(1)
        runs = {key: in_onnxruntime(file, inputs) for key, file in files.items()}
        yield from _ratios("ONNX", runs, repeats)


def report_fourier(repeats: int) -> Iterator[Row]:
    """Compares transforms of real numbers by ONNX's op with products with matrices."""
    for rows, length in _TRANSFORMS:
        x = np.random.default_rng(0).normal(size=(rows, length)).astype(np.float32)

        def by_op(x: Any) -> Any:
            return jax.lax.fft(x, jax.lax.FftType.RFFT, x.shape[-1:])

        def by_products(x: Any) -> Any:
            return fft.fft_of_parts(x, fft_type=jax.lax.FftType.RFFT, fft_lengths=x.shape[-1:])

        with tempfile.TemporaryDirectory() as folder:
            runs = {}
            for name, fun in {"op": by_op, "products": by_products}.items():
                path = pathlib.Path(folder, f"{name}.onnx")
                export.to_onnx(fun, (x,), path, verify=False)
                runs[name] = in_onnxruntime(path, x)
            yield from _ratios(f"ONNX, rfft of {rows} x {length}", runs, repeats)


def report_tfjs(name: str, repeats: int) -> Iterator[Row]:
    """Compares files of TF.js, run by WebAssembly."""
    program = _program(name)
    if reason := chromium.missing():
        yield "TF.js", reason
        return
    x = program.model.make_inputs(1)
    with tempfile.TemporaryDirectory() as path, Browser() as browser:
        ours = _written("tfjs_node_wasm", program, pathlib.Path(path, "lowering")) / tfjs.FOLDER
        theirs = pathlib.Path(path, "keras")
        model = in_keras.MODELS[name]()
        function = tf.function(functools.partial(model, training=False), autograph=False)
        spec = tf.TensorSpec(x.shape, x.dtype, "x0")
        graph_model.write(function.get_concrete_function(spec), theirs)
        seconds = np.empty((repeats, 2))
        for turns, turn in enumerate(seconds):
            # Whoever is second is slower or faster by some percent, so the order turns, too.
            for i, folder in sorted(enumerate((ours, theirs)), reverse=bool(turns % 2)):
                turn[i] = np.median(browser.run("tfjs-wasm", folder, {"x0": x}, _CALLS).times)
    by_us, by_keras = seconds.T
    yield "TF.js by wasm, lowering", performance.measured(1e3 * by_us, "ms")
    yield "TF.js by wasm, lowering / Keras", performance.measured(by_us / by_keras)


FORMATS: Mapping[str, Callable[[str, int], Iterator[Row]]] = {
    "tflite": report_tflite,
    "onnx": report_onnx,
    "tfjs": report_tfjs,
}


def count_ops(model: bytes) -> collections.Counter[str]:
    """How many ops of each kind a TF Lite model has, in all of its graphs."""
    from ai_edge_litert import schema_py_generated as schema

    names = {number: name for name, number in vars(schema.BuiltinOperator).items()}
    root = schema.Model.GetRootAsModel(model)
    codes = [root.OperatorCodes(i) for i in range(root.OperatorCodesLength())]
    kinds = [(code.CustomCode() or names[code.BuiltinCode()].encode()).decode() for code in codes]
    graphs = [root.Subgraphs(i) for i in range(root.SubgraphsLength())]
    return collections.Counter(
        kinds[graph.Operators(i).OpcodeIndex()]
        for graph in graphs
        for i in range(graph.OperatorsLength())
    )


def _program(name: str) -> Program:
    return Program(Case("realistic", name, ()), {})


def _written(converter: str, program: Program, folder: pathlib.Path) -> pathlib.Path:
    """The folder with what a converter writes."""
    write = CONVERTERS[converter].write
    assert write is not None
    folder.mkdir()
    write(program, folder)
    return folder


def _failure(converter: str, program: Program, folder: pathlib.Path) -> str:
    """Why another converter cannot write its file; empty if it can."""
    try:
        _written(converter, program, folder)
    except Exception as error:
        return f"is not converted: {describe(error)}"
    return ""


def _counted(ops: collections.Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in ops.most_common())


def in_litert(file: pathlib.Path, x: np.ndarray) -> Callable[[], Any]:
    """A function that runs a TF Lite model of one input on one thread."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(file), num_threads=1)
    interpreter.allocate_tensors()
    (given,), returned = interpreter.get_input_details(), interpreter.get_output_details()

    def run() -> list[np.ndarray]:
        interpreter.set_tensor(given["index"], x)
        interpreter.invoke()
        return [interpreter.get_tensor(y["index"]) for y in returned]

    return run


def in_onnxruntime(file: pathlib.Path, x: np.ndarray) -> Callable[[], Any]:
    """A function that runs an ONNX model of one input on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(file), options, ["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    return lambda: session.run(None, {given.name: x})


def _ratios(title: str, runs: Mapping[str, Callable[[], Any]], repeats: int) -> Iterator[Row]:
    """The time of the first of several models, and its ratio to those of the others."""
    first, *others = runs
    seconds = dict(
        zip(runs, time_in_turns(list(runs.values()), repeats, CLOCKS["processor"]).T, strict=True)
    )
    yield f"{title}, {first}", performance.measured(1e3 * seconds[first], "ms")
    for other in others:
        ratio = seconds[first] / seconds[other]
        yield f"{title}, {first} / {other}", performance.measured(ratio)


if __name__ == "__main__":
    sys.exit(main())
