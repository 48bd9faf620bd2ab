"""TF.js in Chromium, by WebAssembly."""

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter

CONVERTER = Converter(
    "TF.js (Chromium, wasm)",
    "The same files; TF.js runs them in Chromium without a window, by WebAssembly.",
    loads("tfjs-wasm", tfjs.FOLDER),
    write=tfjs.write,
    missing=missing,
    lacks=tfjs.lacks_by_wasm,
)
