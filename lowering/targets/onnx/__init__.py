"""ONNX, by tf2onnx and onnxruntime."""
