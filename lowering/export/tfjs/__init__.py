"""Export to TF.js. `install` needs neither JAX nor TensorFlow, so names are imported when used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowering.export.tfjs.exporting import to_tfjs
    from lowering.export.tfjs.graph_model import write

__all__ = ["to_tfjs", "write"]

_MODULES = {"to_tfjs": "exporting", "write": "graph_model"}


def __getattr__(name: str) -> Any:
    """A public name."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
