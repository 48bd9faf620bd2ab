"""A cache of the results of TensorFlow graphs.

Targets share the graphs of programs whose rules they share, and so do versions of JAX that trace a
program to the same equations. Nearly all the time of a run in graph or compiled mode goes into
preparing the graph, above all into its compilation by XLA.
"""

import contextlib
import functools
import hashlib
import os
import pathlib
import pickle
import re
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

# A file begins with so many bytes of a hash of the rest.
_DIGEST = hashlib.sha256().digest_size


class Runs(Protocol):
    """The results of runs, by key."""

    def get(self, key: str) -> Any:
        """The results under a key, or None if there are none."""

    def keep(self, key: str, results: Any) -> None:
        """Keeps results under a key."""


class RunsInMemory(Runs):
    """Results that live as long as this object."""

    def __init__(self) -> None:
        self._results: dict[str, Any] = {}

    def get(self, key: str) -> Any:
        return self._results.get(key)

    def keep(self, key: str, results: Any) -> None:
        self._results[key] = results


class RunsInDirectory(Runs):
    """Results that several processes share, one after the other or at the same time.

    All processes have to run on one machine, as results may differ in the last bits between
    machines.

    Args:
      directory: has a file for each key; it is made if there is none.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def get(self, key: str) -> Any:
        with contextlib.suppress(OSError):
            data = (self._directory / key).read_bytes()
            # A file that is damaged is as good as none; to read it might crash.
            if hashlib.sha256(data[_DIGEST:]).digest() == data[:_DIGEST]:
                return pickle.loads(data[_DIGEST:])
        return None

    def keep(self, key: str, results: Any) -> None:
        data = pickle.dumps(results)
        # The file is renamed when it is complete, so that no process reads a part of it. On a full
        # disk results are not kept, which costs nothing but time.
        with contextlib.suppress(OSError):
            number, name = tempfile.mkstemp(dir=self._directory)
            try:
                with open(number, "wb") as file:
                    file.write(hashlib.sha256(data).digest() + data)
                os.replace(name, self._directory / key)
            finally:
                pathlib.Path(name).unlink(missing_ok=True)


def key_of(graph_def: Any, args: Iterable[np.ndarray], *circumstances: str) -> str:
    """The key of a run; runs with the same key have the same results.

    Args:
      graph_def: the graph.
      args: its arguments.
      circumstances: what else results may depend on, such as the mode.
    """
    hashed = hashlib.sha256(digest(graph_def).encode())
    for text in (tf.version.GIT_VERSION, *circumstances):
        hashed.update(f"\0{text}".encode())
    for arg in args:
        hashed.update(f"\0{arg.dtype} {arg.shape}".encode())
        hashed.update(arg.tobytes())
    return hashed.hexdigest()


def digest(graph_def: Any) -> str:
    """A hash of a graph that does not depend on the names of its functions, only on their bodies.

    TensorFlow never gives the same name to two functions of a process.
    """
    functions = {function.signature.name: function for function in graph_def.library.function}

    def without_number(text: str) -> str:
        """Placeholders in conditions of loops have the number of a function in their names."""
        return re.sub(r"_\d+(___redundant_placeholder)", r"\1", text)

    def hashed(message: Any, arguments: Mapping[str, str]) -> str:
        text = without_number(str(message))
        strings = r'"((?:[^"\\]|\\.)*)"'
        text = re.sub(strings, lambda found: arguments.get(found[1]) or named(found[1]), text)
        return hashlib.sha256(text.encode()).hexdigest()

    @functools.cache
    def named(name: str) -> str:
        if name not in functions:
            return name
        anonymous = type(functions[name])()
        anonymous.CopyFrom(functions[name])
        anonymous.signature.name = ""
        # An argument that several ops of a branch take has the name of any of these.
        arguments = [without_number(x.name) for x in anonymous.signature.input_arg]
        return hashed(anonymous, {name: f"argument {i}" for i, name in enumerate(arguments)})

    nodes = type(graph_def)()
    nodes.CopyFrom(graph_def)
    nodes.ClearField("library")
    return hashed(nodes, {})
