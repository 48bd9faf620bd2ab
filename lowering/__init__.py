"""Turns JAX functions into TensorFlow ops, one JAX primitive at a time.

JAX and TensorFlow take seconds to import, so that happens at the first use of a name.
"""

import gc
import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from lowering import versions

if TYPE_CHECKING:
    from lowering import export, jax2tf
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
    "export",
    "jax2tf",
    "rule",
]
__version__ = versions.VERSION

# Where each public name is defined; those that are modules themselves have None.
_MODULES = {
    "Context": "lowering.context",
    "LoweringError": "lowering.errors",
    "ShapeError": "lowering.errors",
    "Trait": "lowering.registry",
    "TransformationError": "lowering.errors",
    "UnsupportedError": "lowering.errors",
    "call_tf": "lowering.frontend.call_tf",
    "decomposition": "lowering.registry",
    "export": None,
    "jax2tf": None,
    "rule": "lowering.registry",
}

versions.check()


def _with_rules() -> types.ModuleType:
    """The module of `convert`, which registers the rules when it is imported.

    Python's garbage collector would look through all objects of JAX and TensorFlow in between,
    which takes longer than the imports; what these make is no garbage.
    """
    name = "lowering.convert"
    if name in sys.modules or not gc.isenabled():
        return importlib.import_module(name)
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        gc.enable()


def __getattr__(name: str) -> Any:
    """A public name, once the rules are registered."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    versions.check_installed()
    _with_rules()
    module = _MODULES[name]
    if module is None:
        return importlib.import_module(f"lowering.{name}")
    return getattr(importlib.import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(types.ModuleType):
    """The package, in which `convert` is the function and not the module of the same name."""

    @property
    def convert(self) -> Any:
        versions.check_installed()
        return _with_rules().convert

    @convert.setter
    def convert(self, module: types.ModuleType) -> None:
        """Does nothing: Python sets the attribute to the module when that is imported."""


sys.modules[__name__].__class__ = _Package
