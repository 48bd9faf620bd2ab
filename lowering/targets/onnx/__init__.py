"""ONNX, as onnxruntime runs it."""
