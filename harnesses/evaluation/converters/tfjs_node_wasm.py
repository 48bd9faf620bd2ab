"""TF.js in Node, by WebAssembly."""

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.converters.tfjs_node import loads, missing

CONVERTER = Converter(
    "TF.js (Node, wasm)",
    "The same files; TF.js runs them in Node, by WebAssembly.",
    loads("wasm"),
    write=tfjs.write,
    missing=missing,
    lacks=tfjs.lacks_by_wasm,
)
