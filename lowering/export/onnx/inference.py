"""Dtypes and shapes that follow from those of operands, by ONNX's own inference for single ops."""

import onnx
import onnx_ir as ir
from onnx import defs, shape_inference

# Constants of more elements are no sizes, axes or places, on which shapes depend.
_FEW = 64

# Until a model is written, reductions have their axes as an operand, as from this version on.
_AXES_ARE_OPERANDS = 18


def describe(node: ir.Node, opset: int) -> None:
    """Infers the missing dtypes and shapes of the results of a node, as far as possible.

    They do not for nodes with graphs, for operands of which nothing is known, and for sizes that
    depend on what operands hold.

    Args:
      node: the node.
      opset: the version of the set of operators.
    """
    lacking = [x for x in node.outputs if x.shape is None or x.dtype is None]
    operands = {x.name or "": x for x in node.inputs if x is not None}
    if not lacking or any(x.shape is None or x.dtype is None for x in operands.values()):
        return
    if any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return
    if node.op_type.startswith("Reduce"):
        opset = max(opset, _AXES_ARE_OPERANDS)
    try:
        found = shape_inference.infer_node_outputs(
            defs.get_schema(node.op_type, opset),
            ir.serde.serialize_node(node),
            {name: _type(x) for name, x in operands.items()},
            {
                name: ir.serde.serialize_tensor(x.const_value)
                for name, x in operands.items()
                if x.const_value is not None and x.const_value.size <= _FEW
            },
            opset_imports=[onnx.helper.make_opsetid("", opset)],
        )
    except shape_inference.InferenceError:
        return
    for x in lacking:
        proto = found.get(x.name or "")
        if proto is None or not proto.HasField("tensor_type"):
            continue
        if x.dtype is None:
            x.type = ir.serde.deserialize_type_proto_for_type(proto)
        if x.shape is None:
            x.shape = ir.serde.deserialize_type_proto_for_shape(proto)


def _type(x: ir.Value) -> onnx.TypeProto:
    """The type of an operand: its dtype, and its sizes or their names."""
    assert x.dtype is not None and x.shape is not None
    sizes = [n if isinstance(n, int) else n.value for n in x.shape]
    return onnx.helper.make_tensor_type_proto(int(x.dtype), sizes)
