"""Targets and modes: who runs the TensorFlow ops, and how."""

from lowering.targets.current import current, lowering_for
from lowering.targets.folders import (
    CONSUMER,
    CONSUMERS,
    ONNX,
    PORTABLE,
    TARGETS,
    TF,
    TFJS,
    TFLITE,
    XLA,
    add,
    all_targets,
    resolve,
)
from lowering.targets.mode import Mode
from lowering.targets.quirk import Quirk
from lowering.targets.target import Target

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
    "Quirk",
    "Target",
    "add",
    "all_targets",
    "current",
    "lowering_for",
    "resolve",
]
