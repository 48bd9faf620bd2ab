"""How fast a language model reads and writes in runtimes, compared with `jax.jit`.

    python -m tools.bench_exports --format decoding

Times are those of the processor, for one thread; a ratio is the median over turns. LiteRT-LM and
the browser are timed by the clock. `jax.jit` may write to the cache that it is given, as LiteRT
does; the other runtimes have caches of their own for what they return.
"""

import dataclasses
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from harnesses.browser import ONNX_OPSET, Browser
from harnesses.evaluation.converters import chromium
from harnesses.models import decoder_linen
from harnesses.models.decoder_layers import Decoder
from lowering import export
from lowering.export.packages import import_package
from results.figures import Measured
from tools.bench import CLOCKS, time_in_turns
from tools.performance import measured

# Of 75 MB in float32, about as much for each layer as a model for phones has.
SIZES = Decoder(
    vocabulary=8192, layers=6, features=512, heads=8, key_heads=2, head_features=64, hidden=1536
)
CAPACITY = 1024
PROMPT = 128

# How often a browser computes a step.
_CALLS = 20

# A figure and its value; what is missing is a text.
Row = tuple[str, Measured | str]


def report(repeats: int, litert_torch: pathlib.Path | None = None) -> Iterator[Row]:
    """Rows of figure and value.

    Args:
      repeats: how many turns there are.
      litert_torch: a Python that has litert-torch, whose model of the same sizes is measured, too.
    """
    step, params = decoder_linen.decoder(SIZES, seed=0)
    signatures = export.prefill_decode(
        step, SIZES.empty(CAPACITY), CAPACITY, prefill=(PROMPT,), params=params
    )
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        medians = {}
        for function, tokens in (("decode", 1), (f"prefill_{PROMPT}", PROMPT)):
            one = {key: _of_function(x, function) for key, x in signatures.items()}
            runs = {
                "LiteRT": _in_litert(folder / f"{function}.tflite", one),
                "LiteRT, int8": _in_litert(folder / f"{function}8.tflite", one, quantize="int8"),
                "onnxruntime": _in_onnxruntime(folder / f"{function}.onnx", one),
                "jax.jit": _in_jax(one),
            }
            if litert_torch is not None:
                path = folder / f"{function}_torch.tflite"
                runs["litert-torch"] = _of_litert_torch(litert_torch, tokens, path)
            title = function.partition("_")[0]
            clock = CLOCKS["processor"]
            seconds = dict(
                zip(runs, time_in_turns(list(runs.values()), repeats, clock).T, strict=True)
            )
            for runtime, of_runtime in seconds.items():
                medians[runtime, function] = np.median(of_runtime)
                yield f"{title}, {runtime}", measured(tokens / of_runtime, "tokens/s")
            for other in (name for name in ("jax.jit", "litert-torch") if name in runs):
                for runtime in (name for name in runs if name != other):
                    ratio = measured(seconds[runtime] / seconds[other])
                    yield f"{title}, {runtime} / {other}", ratio
        for runtime in runs:
            first = medians[runtime, f"prefill_{PROMPT}"] + medians[runtime, "decode"]
            yield f"first token after {PROMPT}, {runtime}", _once(1e3 * first, "ms")
        yield from _in_browser(folder, _of_functions(signatures, "decode"))
        yield from _in_litertlm(folder / "model.litertlm", signatures)


def _of_function(argument: Any, name: str) -> Any:
    """The value for one function of an argument that an export has for several."""
    is_by_name = isinstance(argument, Mapping) and name in argument
    return argument[name] if is_by_name else argument


def _of_functions(signatures: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: _of_function(x, name) for key, x in signatures.items()}


def _inputs(one: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The inputs of a function by name."""
    leaves = jax.tree_util.tree_leaves(one["args"])
    return dict(zip(one["input_names"], map(np.asarray, leaves), strict=True))


def _in_litert(path: pathlib.Path, one: Mapping[str, Any], **options: Any) -> Callable[[], Any]:
    """A step in LiteRT's interpreter, whose inputs stay where they are."""
    export.to_tflite(**one, path=path, verify=False, **options)
    interpreter = _interpreter(path)
    tensors = interpreter.get_signature_runner().get_input_details()
    for name, x in _inputs(one).items():
        interpreter.set_tensor(tensors[name]["index"], x)
    return interpreter.invoke


def _of_litert_torch(python: pathlib.Path, length: int, path: pathlib.Path) -> Callable[[], Any]:
    """A step of litert-torch's model in LiteRT's interpreter."""
    sizes = json.dumps(dataclasses.asdict(SIZES))
    script = pathlib.Path(__file__).with_name("litert_torch_decoder.py")
    # Without the folder of the script, where `bisect` is another module than Python's.
    command = [str(python), "-P", str(script), sizes, str(length), str(CAPACITY), str(path)]
    subprocess.run(command, check=True)
    interpreter = _interpreter(path)
    for details in interpreter.get_signature_runner().get_input_details().values():
        x = np.zeros(details["shape"], details["dtype"])
        if x.ndim == 1:  # Positions in the middle of the cache.
            x += np.arange((CAPACITY - length) // 2, (CAPACITY + length) // 2, dtype=x.dtype)
        interpreter.set_tensor(details["index"], x)
    return interpreter.invoke


def _interpreter(path: pathlib.Path) -> Any:
    litert = import_package("ai_edge_litert.interpreter", "tflite")
    interpreter = litert.Interpreter(model_path=str(path), num_threads=1)
    interpreter.allocate_tensors()
    return interpreter


def _in_onnxruntime(path: pathlib.Path, one: Mapping[str, Any]) -> Callable[[], Any]:
    """A step in onnxruntime, which writes to the same arrays each time."""
    runtime = import_package("onnxruntime", "onnx")
    _to_onnx(path, one)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = runtime.InferenceSession(str(path), options, ["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, x in _inputs(one).items():
        binding.bind_ortvalue_input(name, runtime.OrtValue.ortvalue_from_numpy(x))
    for output in session.get_outputs():
        binding.bind_output(output.name, "cpu")
    session.run_with_iobinding(binding)
    for output, x in zip(session.get_outputs(), binding.get_outputs(), strict=True):
        binding.bind_ortvalue_output(output.name, x)
    return lambda: session.run_with_iobinding(binding)


def _to_onnx(path: pathlib.Path, one: Mapping[str, Any], **options: Any) -> None:
    """Writes a step for ONNX, which takes no two arrays of one name."""
    names = [f"new_{name}" for name in one["output_names"]]
    export.to_onnx(**{**one, "output_names": names}, path=path, verify=False, **options)


def _in_jax(one: Mapping[str, Any]) -> Callable[[], Any]:
    """A step of `jax.jit`, which writes to the cache that it is given."""
    *others, cache = one["args"]
    given = jax.device_put((one["params"], *others))

    def step(cache: Any, *args: Any) -> Any:
        results = one["fun"](*args, cache)
        leaves, tree = jax.tree_util.tree_flatten(cache)
        updated = results[-len(leaves) :]
        return results[: -len(leaves)], jax.tree_util.tree_unflatten(tree, updated)

    jitted = jax.jit(step, donate_argnums=0)
    kept = [jax.device_put(cache)]

    def run() -> None:
        logits, kept[0] = jitted(kept[0], *given)
        jax.block_until_ready((logits, kept[0]))

    return run


def _in_browser(folder: pathlib.Path, one: Mapping[str, Any]) -> Iterator[Row]:
    """Decode steps in Chromium, reading and writing of caches included."""
    if reason := chromium.missing():
        yield "decode, in a browser", reason
        return
    export.to_tfjs(**one, path=folder / "tfjs", verify=False)
    _to_onnx(folder / "step.onnx", one, opset=ONNX_OPSET)
    # The file for LiteRT is there already.
    files = {"tfjs-wasm": "tfjs", "onnxruntime": "step.onnx", "litert": "decode.tflite"}
    with Browser() as browser:
        for runtime, name in files.items():
            times = browser.run(runtime, folder / name, _inputs(one), _CALLS).times
            yield f"decode, {runtime} in Chromium", measured(1 / np.array(times), "tokens/s")


def _in_litertlm(path: pathlib.Path, signatures: Mapping[str, Any]) -> Iterator[Row]:
    """The figures of LiteRT-LM's own benchmark for a file."""
    try:
        litert_lm = import_package("litert_lm", "litertlm")
        tokenizers = import_package("tokenizers", "litertlm")
    except ImportError as error:
        yield "LiteRT-LM", str(error)
        return
    words = {f"<{i}>": i for i in range(SIZES.vocabulary)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, "<0>"))
    export.to_litertlm(
        **signatures, path=path, tokenizer=tokenizer, stop_tokens=["<1>"], verify=False
    )
    found = litert_lm.Benchmark(
        str(path),
        litert_lm.Backend.CPU(thread_count=1),
        prefill_tokens=PROMPT,
        decode_tokens=PROMPT,
        cache_dir=":nocache",
    ).run()
    yield "decode, LiteRT-LM", _once(found.last_decode_tokens_per_second, "tokens/s")
    yield "prefill, LiteRT-LM", _once(found.last_prefill_tokens_per_second, "tokens/s")
    first = 1e3 * found.time_to_first_token_in_second
    yield f"first token after {PROMPT}, LiteRT-LM", _once(first, "ms")


def _once(value: float, unit: str) -> Measured:
    """A figure that was measured once, without turns."""
    return Measured(value, value, value, unit)
