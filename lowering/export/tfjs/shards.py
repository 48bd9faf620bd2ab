"""The files of the weights of a graph model, written one weight after the other."""

import pathlib
from typing import Any

import numpy as np


class Writer:
    """Files of a size, with the bytes of arrays in turn; their names have the number of all.

    Attributes:
      paths: the names of the files, at the end of a `with`.
    """

    def __init__(self, directory: pathlib.Path, shard_bytes: int):
        self.paths: list[str] = []
        self._directory, self._shard_bytes = directory, shard_bytes
        self._files: list[pathlib.Path] = []
        self._left = 0

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: Any) -> None:
        """Gives the files their names."""
        count = len(self._files)
        for i, path in enumerate(self._files, 1):
            self.paths.append(f"group1-shard{i}of{count}.bin")
            path.rename(self._directory / self.paths[-1])

    def write(self, array: np.ndarray) -> None:
        """Appends an array, whose bytes need not be contiguous."""
        data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        while data.size:
            if not self._left:
                self._files.append(self._directory / f"shard{len(self._files)}")
                self._left = self._shard_bytes
            part = data[: self._left]
            with self._files[-1].open("ab") as file:
                file.write(part.data)
            data, self._left = data[part.size :], self._left - part.size
