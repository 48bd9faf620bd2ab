"""Checks that something is a JAX function, and says what to give instead."""

from typing import Any

import jax
import jax.extend.core as jex_core
import tensorflow as tf

_MADE_OF = "give the function that it was made of"

# What people give in place of a JAX function, and what to do with it.
_INSTEAD = {
    jax.export.Exported: f"it has the program in StableHLO alone; {_MADE_OF}",
    jax.stages.Lowered: f"it has the program in StableHLO alone; {_MADE_OF}",
    jax.stages.Compiled: f"it is machine code; {_MADE_OF}",
    jex_core.ClosedJaxpr: "jax.extend.core.jaxpr_as_fun makes a function of it",
    tf.types.experimental.PolymorphicFunction: "lowering.call_tf makes a JAX function of it",
    tf.types.experimental.ConcreteFunction: "lowering.call_tf makes a JAX function of it",
}


def check(fun: Any, expected: str = "a JAX function") -> None:
    """Raises a TypeError for what is no JAX function; `expected` says what it should be."""
    advice = [text for kind, text in _INSTEAD.items() if isinstance(fun, kind)]
    if advice or not callable(fun):
        found = "; ".join([f"expected {expected}, not {type(fun).__name__}", *advice])
        raise TypeError(found)
