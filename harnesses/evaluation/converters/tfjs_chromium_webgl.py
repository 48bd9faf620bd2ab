"""TF.js in Chromium, by WebGL."""

import jax

from harnesses.evaluation.converters import tfjs
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.program import Program


def _lacks(program: Program, message: str) -> str:
    """Keys of random numbers have words of 32 bits."""
    has_words = any(x.dtype == "uint32" for x in jax.tree.leaves(program.structs))
    if has_words and message.startswith("DifferentError"):
        return "TF.js holds integers as floats in WebGL, exact to 24 bits, and random bits have 32"
    return ""


CONVERTER = Converter(
    "TF.js (Chromium, webgl)",
    "The same files; TF.js runs them in Chromium without a window, by WebGL.",
    loads("tfjs-webgl", tfjs.FOLDER),
    write=tfjs.write,
    missing=missing,
    lacks=_lacks,
)
