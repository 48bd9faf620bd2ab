"""Writes graphs of TensorFlow ops as ONNX models.

`graph` walks a graph once; values of ONNX stand for its tensors. The rule of each op is in a table
that the other modules fill, and adds nodes by a `builder`. Variables become initializers, whose
values stay where they are until they are written. Functions that are called are inlined.
"""

from lowering.export.onnx_writer.model import model, save, serialized
from lowering.export.onnx_writer.opsets import OPSETS, newest

__all__ = ["OPSETS", "model", "newest", "save", "serialized"]
