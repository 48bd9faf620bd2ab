"""Targets and modes: who runs the TensorFlow ops, and how."""

from lowering.targets.mode import Mode
from lowering.targets.target import (
    CONSUMERS,
    ONNX,
    PORTABLE,
    TARGETS,
    TF,
    TFJS,
    TFLITE,
    XLA,
    Target,
    resolve,
)

__all__ = [
    "CONSUMERS",
    "ONNX",
    "PORTABLE",
    "TARGETS",
    "TF",
    "TFJS",
    "TFLITE",
    "XLA",
    "Mode",
    "Target",
    "resolve",
]
