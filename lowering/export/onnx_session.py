"""Sessions of onnxruntime on the CPU."""

import os
from typing import Any

from lowering.export.packages import import_package


def session(model: bytes | str | os.PathLike[str]) -> Any:
    """A session for a model, or for the one in a file.

    On x86 CPUs without VNNI, which sums products of 8 bits, onnxruntime adds pairs of products in
    16 bits, which saturate, unless it is told to be precise.

    Raises:
      ImportError: if onnxruntime is missing.
    """
    onnxruntime = import_package("onnxruntime", "onnx")
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
