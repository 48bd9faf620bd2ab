"""The files of a model, which all converters that run them share."""

import dataclasses
import json
import pathlib
import time

from harnesses.evaluation.converters import Converter
from harnesses.evaluation.errors import describe
from harnesses.evaluation.program import Program


@dataclasses.dataclass(frozen=True)
class Written:
    """The outcome of writing the files of a model.

    Attributes:
      seconds: how long it took.
      file_size: the size of the files in bytes.
      message: why there are none.
    """

    seconds: float = 0.0
    file_size: int = 0
    message: str = ""


# What is left of a process that died or hung while it wrote.
_UNENDED = Written(message="the conversion has come to no end")


def write(program: Program, converter: Converter, folder: pathlib.Path) -> Written:
    """Writes the files of a model, unless an earlier process has: each is converted once.

    Args:
      program: the model.
      converter: the first of the converters that run these files.
      folder: an empty folder, or what an earlier call has left of it.
    """
    assert converter.write is not None
    report = folder / "report.json"
    if report.exists():
        return Written(**json.loads(report.read_text()))
    _keep(report, _UNENDED)
    start = time.perf_counter()
    try:
        converter.write(program, files(folder))
    except Exception as error:
        written = Written(message=describe(error))
    else:
        seconds = time.perf_counter() - start
        sizes = [file.stat().st_size for file in files(folder).rglob("*") if file.is_file()]
        written = Written(seconds, sum(sizes))
    _keep(report, written)
    return written


def files(folder: pathlib.Path) -> pathlib.Path:
    """Where in a folder the files of the model are."""
    path = folder / "files"
    path.mkdir(exist_ok=True)
    return path


def _keep(path: pathlib.Path, written: Written) -> None:
    path.write_text(json.dumps(dataclasses.asdict(written)))
