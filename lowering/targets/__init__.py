"""Targets and modes: who runs the TensorFlow ops, and how."""

from lowering.targets.mode import Mode
from lowering.targets.target import TARGETS, TF, XLA, Target, resolve

__all__ = ["TARGETS", "TF", "XLA", "Mode", "Target", "resolve"]
