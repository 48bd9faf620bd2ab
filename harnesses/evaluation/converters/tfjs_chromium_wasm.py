"""TF.js in Chromium, by WebAssembly."""

import contextlib
import pathlib

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.chromium import missing, run_in_chromium
from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.program import Program


def _load(_: Program, folder: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return run_in_chromium("tfjs-wasm", folder / tfjs.FOLDER)


CONVERTER = Converter(
    "TF.js (Chromium, wasm)",
    "The same files; TF.js runs them in Chromium without a window, by WebAssembly.",
    _load,
    write=tfjs.write,
    missing=missing,
    lacks=tfjs.lacks_by_wasm,
)
