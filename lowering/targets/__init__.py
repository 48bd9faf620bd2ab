"""Targets and modes: who runs the TensorFlow ops, and how."""

from lowering.targets.mode import Mode
from lowering.targets.target import (
    CONSUMER,
    CONSUMERS,
    ONNX,
    PORTABLE,
    TARGETS,
    TF,
    TFJS,
    TFLITE,
    XLA,
    Target,
    chain,
    resolve,
)

__all__ = [
    "CONSUMER",
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
    "chain",
    "resolve",
]
