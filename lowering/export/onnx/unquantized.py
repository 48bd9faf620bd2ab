"""Explains why a quantization finds nothing in a model of ONNX."""

import onnx_ir as ir

from lowering.export.onnx.constants import is_computed
from lowering.export.onnx.dtypes import FLOAT
from lowering.export.onnx.integer_weights import WEIGHTS, array_of_weight

_PRODUCTS = ("MatMul", "Gemm")


def why_none(model: ir.Model, quantize: str) -> str:
    """Why a quantization finds nothing in a model, as a part of a sentence."""
    nodes = list(ir.traversal.RecursiveGraphIterator(model.graph))
    of_floats = [x for x in nodes if x.outputs[0].dtype == FLOAT and x.op_type in WEIGHTS]
    kinds = {x.op_type for x in of_floats if _is_known(x, WEIGHTS[x.op_type])}
    is_left = any(x.op_type in _PRODUCTS and _is_known(x, 0) for x in of_floats)
    if quantize == "int8" and (is_left or kinds):
        return (
            "the weights are in branches or loops, which onnxruntime's quantizer does not reach; "
            '"dynamic" and "int4" do'
        )
    if quantize == "int4" and kinds.difference(_PRODUCTS):
        return "int4 is for products only, and the weights are of convolutions or lookups"
    if is_left:
        return "the weights are left operands of products, and only right ones are quantized"
    if any(is_computed(x.inputs[WEIGHTS[x.op_type]]) for x in of_floats):
        return "the constants of products, convolutions and lookups are computed, and no weights"
    return "no constant float32 weights of products, convolutions or lookups"


def _is_known(node: ir.Node, index: int) -> bool:
    """Whether an operand of a node is a constant."""
    return array_of_weight(node.inputs[index]) is not None
