"""TF.js in Node, by WebAssembly."""

import contextlib
import pathlib

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.tfjs_node import missing, run_in_node
from harnesses.evaluation.program import Program


def _load(_: Program, folder: pathlib.Path) -> contextlib.AbstractContextManager[Run]:
    return run_in_node(folder, "wasm")


CONVERTER = Converter(
    "TF.js (Node, wasm)",
    "The same files; TF.js runs them in Node, by WebAssembly.",
    _load,
    write=tfjs.write,
    missing=missing,
    lacks=tfjs.lacks_by_wasm,
)
