"""TF Lite with kernels of TensorFlow, by TensorFlow's own converter of JAX functions."""

import pathlib

from harnesses.evaluation.converters.converter import Converter, Run
from harnesses.evaluation.converters.hlo import convert_hlo
from harnesses.evaluation.program import Program


def _convert(program: Program, folder: pathlib.Path) -> Run:
    return convert_hlo(program, folder, flex=True)


CONVERTER = Converter("convert_hlo+flex", "The same, with Flex.", _convert, compared=True)
