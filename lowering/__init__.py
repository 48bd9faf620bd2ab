"""Turns JAX functions into TensorFlow ops, one JAX primitive at a time."""

from lowering.context import Context
from lowering.convert import convert
from lowering.errors import LoweringError, ShapeError, TransformationError, UnsupportedError
from lowering.frontend.call_tf import call_tf
from lowering.registry import Trait, decomposition, rule

__all__ = [
    "Context",
    "LoweringError",
    "ShapeError",
    "Trait",
    "TransformationError",
    "UnsupportedError",
    "call_tf",
    "convert",
    "decomposition",
    "rule",
]
__version__ = "0.1.0"
