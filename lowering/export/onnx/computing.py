"""The dtypes in which models compute what JAX computes in 16 bits."""

from typing import Any

from lowering.targets import ONNX, Target

# What `to_onnx(compute_dtype=...)` takes.
DTYPES = ("float16",)


def target(dtype: str | None, quantize: str | None, opset: int) -> Target:
    """The target that computes in a dtype, with the ops of a version of ONNX's set of operators.

    Raises:
      ValueError: for another dtype than there is for this, or together with a quantization.
    """
    of_opset = ONNX.of_version(opset)
    if dtype is None:
        return of_opset
    if dtype not in DTYPES:
        raise ValueError(f'compute_dtype is "float16" or None, not {dtype!r}')
    if quantize is not None:
        raise ValueError(
            "compute_dtype and quantize do not go together: onnxruntime quantizes float32 weights"
        )
    return of_opset.computing_in(dtype)


def check(dtype: str | None, model: Any) -> None:
    """Raises a ValueError for a model without a value of a dtype that was asked for."""
    if dtype is None:
        return
    import onnx_ir as ir

    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    results = (x for node in nodes for x in node.outputs)
    wanted = ir.DataType[dtype.upper()]
    if not any(x.dtype == wanted for x in (*model.graph.inputs, *results)):
        raise ValueError(
            f"compute_dtype={dtype!r}, but the function computes nothing in {dtype}; cast its "
            f"parameters and arguments to {dtype}, or give its modules this dtype"
        )
