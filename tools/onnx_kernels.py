"""The kernels of onnxruntime's CPU: for which dtypes it has each op of ONNX, in which opsets."""

import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from typing import Any

from onnx import defs

from lowering.export.onnx.opsets import OPSETS
from lowering.targets import ONNX

_PROVIDER = "CPUExecutionProvider"
_NO_END = 2**31 - 1
_PATH = ONNX.folder / "kernels.json"


def kernels() -> dict[str, dict[str, list[str]]]:
    """The dtypes of the first operand of each op, by the opset from which on they hold.

    `{"Where": {"17": ["FLOAT", ...]}}`: an opset that is not there has those of the one before;
    none are listed where an op has no kernel any more.
    """
    by_op: dict[str, list[Any]] = {}
    for kernel in _registered():
        if kernel.provider == _PROVIDER and not kernel.domain and kernel.type_constraints:
            by_op.setdefault(kernel.op_name, []).append(kernel)
    found = {}
    for op, registered in sorted(by_op.items()):
        versions: dict[str, list[str]] = {}
        last: list[str] = []
        for opset in OPSETS:
            dtypes = _dtypes(kernel for kernel in registered if _holds(kernel, opset))
            if dtypes != last:
                versions[str(opset)] = last = dtypes
        if versions:
            found[op] = versions
    return found


def write(found: Mapping[str, Any]) -> None:
    """Writes the table, with a line for each op."""
    versions = json.dumps({"onnxruntime": importlib.metadata.version("onnxruntime")})
    rows = ",\n".join(f"  {json.dumps(op)}: {json.dumps(of)}" for op, of in found.items())
    _PATH.write_text(f'{{\n "versions": {versions},\n "kernels": {{\n{rows}\n }}\n}}\n')


def differences(found: Mapping[str, Any]) -> list[str]:
    """The ops whose kernels are others than those in the table."""
    known = json.loads(_PATH.read_text())["kernels"]
    return sorted(op for op in known.keys() | found.keys() if known.get(op) != found.get(op))


def _registered() -> list[Any]:
    from onnxruntime.capi import onnxruntime_pybind11_state

    return onnxruntime_pybind11_state.get_all_opkernel_def()


def _holds(kernel: Any, opset: int) -> bool:
    """Whether onnxruntime takes a kernel for an op as it is in an opset.

    One without an end is for the version of the op with which it begins, and no later one.
    """
    if not defs.has(kernel.op_name, opset):
        return False
    since = defs.get_schema(kernel.op_name, opset).since_version
    first, last = kernel.version_range
    return first == since or (first < since <= last != _NO_END)


def _dtypes(kernels: Iterable[Any]) -> list[str]:
    """The dtypes that kernels have, by the names of ONNX."""
    found = set()
    for kernel in kernels:
        of = kernel.type_constraints
        # T, or T1 where operands and results have several; others are of indices.
        for text in next(of[name] for name in ("T", "T1", min(of)) if name in of):
            name = text.removeprefix("tensor(").removesuffix(")").upper()
            if text.startswith("tensor(") and name != "STRING":
                found.add(name)
    return sorted(found)
