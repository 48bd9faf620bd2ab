"""Primitives that JAX does not have."""

import jax.extend.core as jex_core
from jax.interpreters import mlir


def identity_primitive(name):
    """A primitive that is the identity in JAX."""
    primitive = jex_core.Primitive(name)
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, lambda ctx, x: [x])
    return primitive
