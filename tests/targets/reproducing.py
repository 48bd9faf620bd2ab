"""Reproduces the quirks of a target, each in a process that may end by it.

    python -m tests.targets.reproducing tflite

prints a line for each quirk as it begins, and one with the outcome: whether it still happens, or
an error. `outcomes` runs that, and what is of JavaScript in Node and in a browser.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping
from typing import Any

from harnesses.browser import Browser
from lowering.export.tfjs import node
from lowering.targets import quirk
from lowering.targets.quirk import Quirk
from tests.helpers import ROOT

# TensorFlow uses oneDNN by default on some processors only, and some quirks come from it.
_ENVIRONMENT = {"TF_ENABLE_ONEDNN_OPTS": "1"}

# The function `tf` of a quirk in Node.
_NODE = """
import {createRequire} from 'node:module';
const folder = %s;
const require = createRequire(folder + '/');
const [core, converter, wasm] = ['core', 'converter', 'backend-wasm'].map(
    (name) => require(`@tensorflow/tfjs-${name}`));
require('@tensorflow/tfjs-backend-cpu');
wasm.setWasmPaths(folder + '/node_modules/@tensorflow/tfjs-backend-wasm/dist/');
const tf = {...core, ...converter};
for (const [name, backend, reproduce] of %s) {
  await tf.setBackend(backend);
  let outcome;
  try { outcome = await reproduce(tf); } catch (error) { outcome = String(error); }
  process.stderr.write(JSON.stringify([name, outcome]) + '\\n');
}
"""


def outcomes(target: str) -> Mapping[str, Any]:
    """Whether each quirk of a target still happens, by name, or an error."""
    quirks = quirk.known(target)
    in_python = {name: q for name, q in quirks.items() if q.backend is None}
    in_node = [q for q in quirks.values() if q.backend in node.BACKENDS]
    in_browser = [q for q in quirks.values() if q.backend == "webgl"]
    return {
        **(_in_processes(target, in_python) if in_python else {}),
        **(_in_node(in_node) if in_node else {}),
        **(_in_browser(in_browser) if in_browser else {}),
    }


def _in_processes(target: str, quirks: Mapping[str, Quirk]) -> dict[str, Any]:
    """In as few processes as there are: one that ends is followed by another for the rest."""
    found: dict[str, Any] = {}
    while rest := [name for name in quirks if name not in found]:
        command = [sys.executable, "-m", "tests.targets.reproducing", target, *rest]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, **_ENVIRONMENT},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        begun, found_now = None, {}
        for line in done.stdout.splitlines():
            name, *outcome = json.loads(line)
            begun = name
            found_now.update(dict.fromkeys([name] if outcome else (), *outcome))
        found |= found_now
        if begun is None:
            raise RuntimeError(done.stderr[-2000:])
        if begun not in found_now:
            found[begun] = quirks[begun].ends_process or f"the process ends: {done.returncode}"
    return found


def _in_node(quirks: Collection[Quirk]) -> dict[str, Any]:
    functions = ", ".join(
        f"[{json.dumps(q.name)}, {json.dumps(q.backend)}, async (tf) => {{{q.reproduce()}}}]"
        for q in quirks
    )
    with tempfile.NamedTemporaryFile("w", suffix=".mjs") as script:
        script.write(_NODE % (json.dumps(str(node.directory())), f"[{functions}]"))
        script.flush()
        command = [*node.program("node"), script.name]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    lines = [line for line in done.stderr.splitlines() if line.startswith("[")]
    return dict(map(json.loads, lines))


def _in_browser(quirks: Collection[Quirk]) -> dict[str, Any]:
    with Browser() as browser:
        return {q.name: browser.evaluate(str(q.backend), q.reproduce()) for q in quirks}


def main(target: str, names: Collection[str]) -> None:
    """Prints the outcome of each quirk in Python, as JSON."""
    # What libraries print must not come between.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    quirks = quirk.known(target)
    for name in names or quirks:
        print(json.dumps([name]), file=answers, flush=True)
        try:
            outcome: Any = bool(quirks[name].reproduce())
        except Exception as error:
            outcome = f"{type(error).__name__}: {error}"
        print(json.dumps([name, outcome]), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
