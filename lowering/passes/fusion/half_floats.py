"""Finds functions of 16-bit floats that have constants in them, before the floats are promoted.

A program in 16 bits has its constants rounded to 16 bits, so that no pattern would match them in
float32. So GELU is found in 16 bits, and computed in float32.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering import avals
from lowering.passes.everywhere import Everywhere
from lowering.passes.fusion.natural import GELU, GELUS
from lowering.passes.fusion.patterns import Pattern, fuse
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.literals import convert_literals


def _in_float32(fun: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: fun(x.astype(np.float32)).astype(x.dtype)


_PATTERNS = tuple(
    Pattern(
        example,
        _in_float32(function),
        args=(jax.ShapeDtypeStruct((2, 3), dtype),),
        when=lambda x, dtype=dtype: x.dtype == dtype,
    )
    for dtype in (jnp.float16, jnp.bfloat16)
    for example, function in ((jax.nn.gelu, jax.nn.gelu), *((f, GELU.bind) for f in GELUS))
)


def fuse_half_floats(jaxpr: jex_core.ClosedJaxpr) -> Any:
    """The closed jaxpr in which functions of 16-bit floats compute in float32, wherever they are.

    Without such functions it is the same object as before.
    """
    return Everywhere(finish=_fused).jaxpr(jaxpr)


def _fused(jaxpr: Jaxpr) -> Any:
    is_open = not isinstance(jaxpr, jex_core.ClosedJaxpr)
    if (is_open and jaxpr.constvars) or not any(map(_is_half, jaxpr.eqns)):
        return jaxpr
    converted = convert_literals(jaxpr)
    fused: Any = fuse(converted, _PATTERNS, {})
    if fused is converted:
        return jaxpr
    return fused.jaxpr if is_open else fused


def _is_half(eqn: jex_core.JaxprEqn) -> bool:
    """Whether the last of the results of an equation are floats of 16 bits."""
    return bool(eqn.outvars) and getattr(eqn.outvars[-1].aval, "dtype", None) in avals.HALF_FLOATS
