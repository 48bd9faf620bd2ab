"""What graphs gave when TensorFlow ran them, for whoever runs the same graph again.

Targets share the graphs of programs whose rules they share, and so do versions of JAX that trace a
program to the same equations. Of a run in graph or compiled mode nearly all the time goes into
preparing the graph, above all by XLA.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import re
import tempfile
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf


class Runs:
    """The results of runs, by key.

    Args:
      directory: where results are kept for other processes, too; all of one machine, for results
        may differ in the last bits between machines. If None, they are kept in memory.
    """

    def __init__(self, directory: pathlib.Path | None = None) -> None:
        self._directory = directory
        self._results: dict[str, list[np.ndarray]] = {}
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> list[np.ndarray] | None:
        """The results under a key, or None if there are none."""
        if self._directory is None:
            return self._results.get(key)
        with contextlib.suppress(FileNotFoundError):
            return pickle.loads((self._directory / key).read_bytes())
        return None

    def keep(self, key: str, results: list[np.ndarray]) -> None:
        """Keeps results; whoever looks finds them whole or not at all."""
        if self._directory is None:
            self._results[key] = results
            return
        with tempfile.NamedTemporaryFile(dir=self._directory, delete=False) as file:
            pickle.dump(results, file)
        os.replace(file.name, self._directory / key)


def key_of(graph_def: Any, args: Iterable[np.ndarray], *circumstances: str) -> str:
    """The key of a run: two runs with the same key give the same results.

    Args:
      graph_def: the graph.
      args: its arguments.
      circumstances: whatever else results may depend on.
    """
    hashed = hashlib.sha256(digest(graph_def).encode())
    for text in (tf.version.GIT_VERSION, *circumstances):
        hashed.update(f"\0{text}".encode())
    for arg in args:
        hashed.update(f"\0{arg.dtype} {arg.shape}".encode())
        hashed.update(arg.tobytes())
    return hashed.hexdigest()


def digest(graph_def: Any) -> str:
    """A hash of a graph in which functions count by what they do: no name is given twice."""
    functions = {function.signature.name: function for function in graph_def.library.function}

    def hashed(message: Any) -> str:
        # The condition of a loop has placeholders with its function's number in their names.
        text = re.sub(r"_\d+(___redundant_placeholder)", r"\1", str(message))
        text = re.sub(r'"((?:[^"\\]|\\.)*)"', lambda match: named(match[1]), text)
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cache
    def named(name: str) -> str:
        if name not in functions:
            return name
        anonymous = type(functions[name])()
        anonymous.CopyFrom(functions[name])
        anonymous.signature.name = ""
        return hashed(anonymous)

    nodes = type(graph_def)()
    nodes.CopyFrom(graph_def)
    nodes.ClearField("library")
    return hashed(nodes)
