"""TF Lite with kernels of TensorFlow, by TensorFlow's own converter of JAX functions."""

import pathlib

from harnesses.evaluation.converters.converter import Converter
from harnesses.evaluation.converters.hlo import load_hlo, write_hlo
from harnesses.evaluation.program import Program


def _write(program: Program, folder: pathlib.Path) -> None:
    write_hlo(program, folder, flex=True)


CONVERTER = Converter(
    "convert_hlo+flex", "The same, with Flex.", load_hlo, write=_write, compared=True
)
