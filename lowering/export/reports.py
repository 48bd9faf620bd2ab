"""Reports on models that have been written, which exporters return."""

import contextlib
import functools
import html
import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lowering.export import paths, readers
from lowering.export.descriptions import Array, Description, in_columns
from lowering.export.inspection import inspect
from lowering.export.verification import Error


class Report:
    """What an exporter has made, which prints as a table.

    Attributes:
      file: the file or directory, or None if the model has not been written.
      errors: of each output, the worst error against JAX and the one that is accepted; empty if
        the model was not verified. With several functions an output is called `function/output`.
      seconds: how long the export took.
    """

    def __init__(
        self,
        file: pathlib.Path | None,
        errors: Mapping[str, Error],
        seconds: float,
        describe: Callable[[], Description],
    ) -> None:
        self.file = file
        self.errors = errors
        self.seconds = seconds
        self._describe = describe

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: the description in place of the function that makes it."""
        state = {**self.__dict__, "description": self.description}
        state.pop("_describe", None)  # It is gone from what was pickled before.
        return state

    @functools.cached_property
    def description(self) -> Description:
        """What the model holds."""
        return self._describe()

    @property
    def format(self) -> str:
        """The format: `saved_model`, `tflite`, `onnx`, `tfjs` or `litertlm`."""
        return self.description.format

    @property
    def inputs(self) -> tuple[Array, ...]:
        """Name, dtype and shape of each input, of all functions."""
        return tuple(x for s in self.description.signatures.values() for x in s.inputs)

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Name, dtype and shape of each output, of all functions."""
        return tuple(x for s in self.description.signatures.values() for x in s.outputs)

    @property
    def ops(self) -> Mapping[str, int]:
        """How often each op occurs."""
        return self.description.ops

    @property
    def size(self) -> int:
        """The bytes of the file, or of all files of a directory."""
        return self.description.size

    def rows(self) -> Iterator[tuple[str, str]]:
        """Titles and texts, a line each."""
        if self.file is not None:
            yield "file", str(self.file)
        yield from self.description.rows()
        for output, error in self.errors.items():
            yield "error", f"{output}: {error}"
        if not self.errors:
            yield "error", "not compared with JAX"
        yield "seconds", f"{self.seconds:.1f}"

    def __str__(self) -> str:
        return in_columns(self.rows())

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        lines = "".join(
            f"<tr><th style='text-align: left'>{html.escape(title)}</th>"
            f"<td style='text-align: left'>{html.escape(text)}</td></tr>"
            for title, text in self.rows()
        )
        return f"<table>{lines}</table>"


class Model(bytes):
    """The bytes of a model, with a report on them; it has the attributes of the report, too."""

    report: Report

    def __new__(cls, content: bytes, report: Report) -> "Model":
        """A model with its report."""
        made = super().__new__(cls, content)
        made.report = report
        return made

    def __getattr__(self, name: str) -> Any:
        """An attribute of the report."""
        if name == "report" or name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.report, name)

    def __reduce__(self) -> Any:
        """Pickles the bytes alone, which are all that other processes need."""
        return bytes, (bytes(self),)

    def __repr__(self) -> str:
        return repr(self.report)

    def __str__(self) -> str:
        return str(self.report)

    def _repr_html_(self) -> str:
        """The table in a notebook."""
        return self.report._repr_html_()


class Making:
    """An export that is being made.

    Attributes:
      path: where files are written to until they are complete; None without a file.
    """

    def __init__(self, file: pathlib.Path | None, path: pathlib.Path | None) -> None:
        self._file = file
        self._started = time.perf_counter()
        self._errors: dict[str, Error] = {}
        self.path = path

    def note(self, errors: Mapping[str, Error], function: str = "") -> None:
        """Keeps the worst error of each output of a function, which has a name among several."""
        for name, error in errors.items():
            output = f"{function}/{name}" if function else name
            self._errors[output] = max(error, self._errors.get(output, error))

    def model(self, content: bytes) -> Model:
        """The model that is returned; it is written if there is a path."""
        if self.path is not None:
            self.path.write_bytes(content)
        return Model(content, self._report(lambda: readers.of_bytes(content)))

    def report(self) -> Report:
        """The report on the files that are written."""
        assert self.path is not None
        described = inspect(self.path)
        return self._report(lambda: described)

    def _report(self, describe: Callable[[], Description]) -> Report:
        seconds = time.perf_counter() - self._started
        return Report(self._file, self._errors, seconds, describe)


@contextlib.contextmanager
def making(
    path: str | os.PathLike[str] | None, to: str, overwrite: bool = False
) -> Iterator[Making]:
    """A context in which a model is made, and at whose end it is at `path`.

    Args:
      path: where it will be, if anywhere.
      to: the format, one of `FORMATS`.
      overwrite: whether a model at `path` is replaced.

    Raises:
      TypeError: if `path` is no path.
      ValueError: if it has the suffix of another format.
      FileExistsError: if there is something at `path`, and it is not to be overwritten.
    """
    if path is None:
        yield Making(None, None)
        return
    path = paths.checked(path, to)
    with paths.new_path(path, overwrite) as written:
        yield Making(path, written)
