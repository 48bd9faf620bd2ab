"""Turns JAX functions into TensorFlow ops, one JAX primitive at a time."""

import importlib
from typing import TYPE_CHECKING, Any

from lowering import versions  # noqa: F401  Comes first: it checks what the others import.
from lowering.context import Context
from lowering.convert import convert
from lowering.errors import LoweringError, ShapeError, TransformationError, UnsupportedError
from lowering.frontend.call_tf import call_tf
from lowering.registry import Trait, decomposition, rule

if TYPE_CHECKING:
    from lowering import export, jax2tf

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
    "export",
    "jax2tf",
    "rule",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """The modules `export` and `jax2tf`, which are imported when they are used."""
    if name in ("export", "jax2tf"):
        return importlib.import_module(f"lowering.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
