"""Targets: who will run the TensorFlow ops."""

from lowering.targets.target import TARGETS, TF, XLA, Target, resolve

__all__ = ["TARGETS", "TF", "XLA", "Target", "resolve"]
