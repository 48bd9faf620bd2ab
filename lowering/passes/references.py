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

    What it does with references that it is given from outside stays.
    """
    return _Discharged(lambda eqn: eqn).jaxpr(jaxpr)


class _Discharged(Everywhere):
    def _changed(self, jaxpr: Any) -> Any:
        changed = super()._changed(jaxpr)
        is_closed = isinstance(changed, jex_core.ClosedJaxpr)
        if is_closed and jax_compat.makes_references(changed):
            return jax_compat.without_references(changed)
        return changed
