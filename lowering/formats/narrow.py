"""Floats of 16 bits in float32, for targets that lack them.

They keep the precision of float32. Most equations on them have been promoted by a pass
(`legalize.promotion`). What is left, such as loops that carry them, is lowered on float32 here.
Arguments and results of a program are converted; see `boundary`.
"""

from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals, jax_compat
from lowering.arrays import computations
from lowering.context import Context
from lowering.ops import dtypes
from lowering.ops.values import Value
from lowering.passes.remembering import PerJaxpr


def dtype_of(eqn: jex_core.JaxprEqn) -> np.dtype | None:
    """The dtype that is held in another among those of an equation; None if there is none."""
    dtypes_ = (getattr(var.aval, "dtype", None) for var in (*eqn.invars, *eqn.outvars))
    return next((dtype for dtype in dtypes_ if dtypes.is_narrow(dtype)), None)


def apply(ctx: Context, *operands: Value) -> Any:
    """The results of an equation on narrow dtypes, from operands as they are held."""
    results = run_on_held(ctx, *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


def run_on_held(ctx: Context, *operands: Value, **params: Any) -> list[tf.Tensor]:
    """The results of an equation on operands as they are held; `params` replace parameters."""
    held = jax_compat.replace_dtypes(ctx.eqn, dtypes.held)
    params = {**held.params, **params}
    params = {name: _held_param(x) for name, x in params.items()}
    held = held.replace(params=avals.with_dtypes(params, dtypes.held))
    return ctx.equation(held, *operands)


def _held_param(value):
    if isinstance(value, jex_core.ClosedJaxpr):
        return _held_computation(value)
    if isinstance(value, jex_core.Jaxpr):
        return _held_computation(jex_core.ClosedJaxpr(value, ())).jaxpr
    return value


@PerJaxpr
def _held_computation(computation):
    """A computation on scalars of narrow dtypes, for scalars as they are held.

    Each step is rounded. Only a single monoid stays as it is, for reductions to recognize.
    """
    dtypes_in = [var.aval.dtype for var in computation.invars]
    fun = jex_core.jaxpr_as_fun(computation)

    def on_held(*operands):
        if computations.monoid(computation):
            (eqn,) = computation.eqns
            return eqn.primitive.bind(*operands, **eqn.params)
        narrow = map(lax.convert_element_type, operands, dtypes_in)
        return [lax.convert_element_type(x, dtypes.held(x.dtype)) for x in fun(*narrow)]

    structs = [
        jax.ShapeDtypeStruct(var.aval.shape, dtypes.held(var.aval.dtype))
        for var in computation.invars
    ]
    with jax_compat.our_settings():
        return jax.jit(on_held).trace(*structs).jaxpr
