"""Runs exported models in a real browser: TF.js by webgl, wasm and in JavaScript, LiteRT and
onnxruntime by wasm.

    with Browser() as browser:
        results = browser.run("tfjs-webgl", pathlib.Path("web_model"), {"x": x})

The browser is Chromium without a window, which is driven by Playwright. It reads all files from a
server in this process, and from nowhere else.
"""

import base64
import http.server
import json
import os
import pathlib
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from harnesses.browser import packages
from lowering.export import onnx, tflite
from lowering.export.entry import Entry
from lowering.export.packages import import_package
from lowering.export.tfjs import graph_model

# The newest set of operators that onnxruntime-web runs, in the version of `page/package.json`.
ONNX_OPSET = 26

RUNTIMES = ("tfjs-webgl", "tfjs-wasm", "tfjs-cpu", "litert", "onnxruntime")

# TF.js computes what is small on the CPU, whatever the backend; here the backend has to.
_PAGE = "runner.html?tfjsflags=WEBGL_CPU_FORWARD:false"

# WebGL is computed by the CPU, as machines that test have no graphics card.
FLAGS = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Run(NamedTuple):
    """The results of a model by name, and how long each run took after the first, in seconds."""

    outputs: dict[str, np.ndarray]
    times: list[float]


def chromium() -> str:
    """The path of Chromium: that of the variable CHROMIUM, or the one that is installed.

    Raises:
      FileNotFoundError: with the command that installs it, if there is none.
    """
    named = os.environ.get("CHROMIUM")
    found = named or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise FileNotFoundError(
            "there is no Chromium; install it, on Debian by `apt-get install chromium`, or set the "
            "variable CHROMIUM to its path"
        )
    return found


def launch(playwright: Any) -> Any:
    """A browser of Playwright: Chromium with WebGL."""
    # Chromium's sandbox does not work for root, who runs tests in containers.
    return playwright.chromium.launch(
        executable_path=chromium(), args=list(FLAGS), chromium_sandbox=os.getuid() != 0
    )


class Browser:
    """A browser that runs models until it is closed."""

    def __init__(self) -> None:
        packages.install()
        api = import_package("playwright.sync_api", "browser")
        self._playwright = api.sync_playwright().start()
        self._browser = launch(self._playwright)
        self._page = self._browser.new_page()
        self._models: dict[str, pathlib.Path] = {}
        self._server = _served(self._file)
        self._host = f"http://127.0.0.1:{self._server.server_port}/"
        self._page.route(lambda url: not url.startswith(self._host), lambda route: route.abort())
        self._page.goto(f"{self._host}{_PAGE}")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the browser."""
        self._browser.close()
        self._playwright.stop()
        self._server.shutdown()
        self._server.server_close()

    def run(
        self, runtime: str, model: pathlib.Path, inputs: Mapping[str, np.ndarray], times: int = 0
    ) -> Run:
        """Runs a model.

        Args:
          runtime: one of `RUNTIMES`.
          model: the directory of a TF.js model, or the file of another.
          inputs: its inputs, by name.
          times: how often it is run once more and timed.

        Raises:
          ValueError: for an unknown runtime.
          RuntimeError: if the runtime cannot load or run the model.
        """
        if runtime not in RUNTIMES:
            raise ValueError(f"runtime is one of {', '.join(RUNTIMES)}, not {runtime!r}")
        # Each model has its own address, as the browser keeps what it has read.
        name = f"models/{len(self._models)}"
        self._models[name] = model
        given = {key: _to_json(x) for key, x in inputs.items()}
        try:
            answer = self._page.evaluate(
                "(request) => window.run(...request)",
                [runtime, f"{self._host}{name}", given, times],
            )
        except Exception as error:
            # A runtime may be broken by what it has failed at, as its memory is kept.
            self._page.goto(f"{self._host}{_PAGE}")
            raise RuntimeError(f"{runtime} failed: {error}") from error
        outputs = {key: _from_json(x) for key, x in answer["outputs"].items()}
        return Run(outputs, [time / 1000 for time in answer["times"]])

    def evaluate(self, backend: str, body: str) -> Any:
        """The result of a JavaScript function of `tf` with a body, on a backend of TF.js."""
        fun = f"async (tf) => {{{body}}}"
        return self._page.evaluate(f"() => window.evaluate({json.dumps(backend)}, {fun})")

    def run_entry(self, runtime: str, entry: Entry, times: int = 0) -> Run:
        """Runs an entry that is lowered for the runtime's target on its samples."""
        inputs = {spec.name: x for spec, x in zip(entry.specs, entry.samples, strict=True)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model"
            if runtime == "litert":
                tflite.write(entry.concrete, path)
            elif runtime == "onnxruntime":
                onnx.write(entry.concrete, path, opset=ONNX_OPSET)
            else:
                graph_model.write(entry.concrete, path)
            return self.run(runtime, path, inputs, times)

    def _file(self, name: str) -> pathlib.Path | None:
        if name.startswith("models/"):
            folder, number, *rest = name.split("/")
            return self._models[f"{folder}/{number}"].joinpath(*rest)
        library = name.removeprefix("lib/")
        return packages.library(library) if library in packages.LIBRARIES else packages.PAGE / name


def _served(file: Callable[[str], pathlib.Path | None]) -> http.server.ThreadingHTTPServer:
    """A server of files by their names; models are too large for Playwright to hand them over."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def translate_path(self, path: str) -> str:
            found = file(path.lstrip("/").partition("?")[0])
            # A folder would be listed.
            return str(found) if found is not None and found.is_file() else ""

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _to_json(x: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def _from_json(x: Mapping[str, Any]) -> np.ndarray:
    array = np.frombuffer(base64.b64decode(x["data"]), np.dtype(x["dtype"]))
    return array.reshape([int(size) for size in x["shape"]])
