"""Questions about values of ONNX."""

from typing import Any

import numpy as np
import onnx_ir as ir


def dtype_of(x: ir.Value) -> ir.DataType:
    """The dtype of a value, which has one."""
    assert x.dtype is not None, x.name
    return x.dtype


def kind_of(x: Any) -> str:
    """How an error names what takes the place of a value."""
    return "complex numbers" if isinstance(x, tuple) else "a variable or table"


def is_known(x: ir.Value) -> bool:
    """Whether a value is a constant."""
    return x.const_value is not None


def array_of(x: ir.Value) -> np.ndarray | None:
    """The array of a constant; None if the value is none."""
    return None if x.const_value is None else x.const_value.numpy()


def static(x: ir.Value) -> tuple[int, ...] | None:
    """The shape of a value, if all of it is known."""
    if x.shape is None or not all(isinstance(size, int) for size in x.shape):
        return None
    return tuple(int(str(size)) for size in x.shape)


def made_by(x: ir.Value, kind: str) -> ir.Value | None:
    """The first operand of the node that makes a value, if that is of a kind."""
    node = x.producer()
    return node.inputs[0] if node is not None and node.op_type == kind else None


def is_alone(x: ir.Value) -> bool:
    """Whether a value has exactly one use and is no output of the graph."""
    return len(x.uses()) == 1 and not x.is_graph_output()


def permutation(x: ir.Value) -> list[int]:
    """The permutation of a transpose."""
    node = x.producer()
    assert node is not None
    return list(node.attributes["perm"].as_ints())


def is_index(x: ir.Value) -> bool:
    """Whether a value is indices along an axis, which integers of 32 bits and more represent."""
    node = x.producer()
    if node is None:
        return False
    return node.op_type in ("ArgMax", "ArgMin") or (node.op_type == "TopK" and x is node.outputs[1])
