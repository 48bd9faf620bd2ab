"""Whole neural networks, as a user would convert them. Other harnesses test single primitives."""

from harnesses.models.registry import NAMES, SIZES, Model, load

__all__ = ["NAMES", "SIZES", "Model", "load"]
