"""TF Lite in Chromium."""

import re

from harnesses.evaluation.converters import tflite
from harnesses.evaluation.converters.chromium import loads, missing
from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.program import Program

_DTYPE = re.compile(r"Element type (\w+) is not supported")
_UNKNOWN_SIZE = re.compile(r"does not match expected ranked tensor type \w+\[[^]]*-1")


def _lacks(_: Program, message: str) -> str:
    if found := _DTYPE.search(message):
        return f"`@litertjs/core` has no inputs and outputs of {found[1]}"
    if _UNKNOWN_SIZE.search(message):
        return "`@litertjs/core` has no inputs of unknown sizes"
    return ""


CONVERTER = Converter(
    "LiteRT (Chromium)",
    "The files of TF Lite; `@litertjs/core` runs them in Chromium without a window, by wasm.",
    loads("litert", tflite.FILE),
    write=tflite.write,
    missing=missing,
    lacks=_lacks,
)
