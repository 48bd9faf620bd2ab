"""Replaces references by the values that they hold.

A program may make references (`jax.new_ref`), and read and write them, also in loops and branches.
JAX rewrites it to one that passes values on instead, before it is lowered; so do we.
"""

from typing import Any

import jax.extend.core as jex_core

from lowering import jax_compat
from lowering.passes.everywhere import Everywhere


def without_references(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A jaxpr that makes no references, nor does any jaxpr in it.

    References that are its arguments stay.
    """
    return Everywhere(finish=_discharged).jaxpr(jaxpr)


def _discharged(jaxpr: Any) -> Any:
    is_closed = isinstance(jaxpr, jex_core.ClosedJaxpr)
    makes_references = is_closed and jax_compat.makes_references(jaxpr)
    return jax_compat.without_references(jaxpr) if makes_references else jaxpr
