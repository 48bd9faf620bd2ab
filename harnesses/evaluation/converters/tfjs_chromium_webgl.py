"""TF.js in Chromium, by WebGL."""

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter

CONVERTER = Converter(
    "TF.js (Chromium, webgl)",
    "The same files; TF.js runs them in Chromium without a window, by WebGL.",
    loads("tfjs-webgl", tfjs.FOLDER),
    write=tfjs.write,
    missing=missing,
)
