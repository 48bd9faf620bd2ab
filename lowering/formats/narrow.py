"""Numbers of eight bits or fewer: float8, float4, int4 and int2.

TensorFlow has no dtype for some of them, no conversion for others, and no arithmetic for any; and
XLA's packed int4 is not the int4 of TensorFlow. So the tensors of a program hold them as float32,
int8 or uint8, which represent every value exactly and for which all rules work.

An equation on them is lowered on the dtypes that hold them. Its results are then rounded to the
narrow dtype, or wrapped around, unless they are among the values of the operands. XLA does the same
on a CPU. Where JAX does something else, the primitive has a rule for narrow dtypes, which gets
tensors as they are held. Arguments and results of a program are converted; see `boundary`.
"""

from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals, jax_compat, targets
from lowering.arrays import computations
from lowering.context import Context
from lowering.formats.rounding import HAS_CAST, has_negative_nan, narrow_to, to_bits
from lowering.ops import constant, dtypes, emit, modes, values
from lowering.ops.values import Value
from lowering.passes.remembering import PerJaxpr
from lowering.registry import Trait, has_trait
from lowering.targets import Mode

# Constants of more bytes than these keep their narrow dtype in the graph.
_LARGE_BYTES = 4096


def dtype_of(eqn: jex_core.JaxprEqn) -> np.dtype | None:
    """The narrow dtype of an operand or a result of an equation; None if there is none."""
    dtypes_ = (getattr(var.aval, "dtype", None) for var in (*eqn.invars, *eqn.outvars))
    return next((dtype for dtype in dtypes_ if dtypes.is_narrow(dtype)), None)


def known(value: Value, dtype: Any) -> Value:
    """A known operand as it is held; a large array of float8 is widened by an op of the graph."""
    if not (dtypes.is_narrow(dtype) and values.is_known(value)):
        return value
    is_large = value.nbytes > _LARGE_BYTES and modes.current() is not Mode.EAGER
    # Consumers lack the dtype and the cast.
    stays = is_large and value.dtype == dtype and not targets.current().emulates(dtypes.WORD)
    if stays and dtype in HAS_CAST:
        return tf.cast(constant(value), dtypes.to_tf(dtype))
    return values.held(value, dtype)


def apply(ctx: Context, *operands: Value) -> Any:
    """The results of an equation on narrow dtypes, from operands as they are held."""
    results = run_rounded(ctx, *operands)
    return results if ctx.eqn.primitive.multiple_results else results[0]


def run_rounded(ctx: Context, *operands: Value, **params: Any) -> list[tf.Tensor]:
    """The results of an equation on operands as they are held; `params` replace parameters."""
    results = run_on_held(ctx, *operands, **params)
    if has_trait(ctx.eqn.primitive.name, Trait.SELECTS):
        return results
    return [
        narrow_to(x, var.aval.dtype) if is_narrow(var) else x
        for x, var in zip(results, ctx.eqn.outvars, strict=True)
    ]


def run_on_held(ctx: Context, *operands: Value, **params: Any) -> list[tf.Tensor]:
    """The unrounded results of an equation on operands as they are held.

    `params` replace parameters of the equation.
    """
    held = jax_compat.replace_dtypes(ctx.eqn, dtypes.held)
    params = {**held.params, **params}
    params = {name: _held_param(x) for name, x in params.items()}
    held = held.replace(params=avals.with_dtypes(params, dtypes.held))
    return ctx.equation(held, *operands)


def run_on_bits(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
    """The result of an equation on the bits of its operands, as uint8; only its low bits count."""
    dtype = ctx.in_avals[0].dtype
    bits = [to_bits(x, dtype) for x in operands]
    return _run_on_bytes(ctx, np.uint8, bits)


def run_on_bytes(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
    """The rounded result of an equation on integers of fewer bits, as integers of eight bits."""
    dtype = ctx.in_avals[0].dtype
    byte = np.int8 if dtype in dtypes.NARROW_SIGNED else np.uint8
    return narrow_to(_run_on_bytes(ctx, byte, operands), dtype)


def _run_on_bytes(ctx, byte, operands):
    narrow = {var.aval.dtype for var in ctx.eqn.invars} & {*dtypes.NARROW}
    eqn = jax_compat.replace_dtypes(ctx.eqn, lambda d: np.dtype(byte) if d in narrow else d)
    return ctx.equation(eqn, *operands)[0]


def is_narrow(var: Any) -> bool:
    """Whether a variable is of a narrow dtype."""
    return dtypes.is_narrow(getattr(var.aval, "dtype", None))


def run_on_order(ctx: Context, *operands: tf.Tensor) -> list[tf.Tensor]:
    """The results of an equation that orders its operands.

    In a format without negative zero, NaN has the bits of a negative zero and is the least number.
    """
    lowered = [
        _replace(x, emit("NotEqual", x, x), -np.inf) if has_negative_nan(var.aval.dtype) else x
        for x, var in zip(operands, ctx.eqn.invars, strict=True)
    ]
    return [
        _replace(x, emit("Equal", x, constant(-np.inf, x.dtype)), np.nan)
        if has_negative_nan(var.aval.dtype)
        else x
        for x, var in zip(run_on_held(ctx, *lowered), ctx.eqn.outvars, strict=True)
    ]


def from_infinity(ctx: Context, *operands: tf.Tensor) -> tf.Tensor:
    """The result of a reduction that XLA starts from an infinity; NaN for float8_e8m0fnu.

    In that format infinity becomes NaN, and so does every result.
    """
    result = apply(ctx, *operands)
    return all_nan(result) if ctx.in_avals[0].dtype == dtypes.E8M0 else result


def all_nan(x: tf.Tensor) -> tf.Tensor:
    """NaN in the shape of `x`, or zeros if it holds integers."""
    nothing = np.nan if x.dtype.is_floating else 0
    return tf.fill(tf.shape(x), constant(nothing, x.dtype))


def _replace(x, where, value):
    return emit("SelectV2", where, constant(value, x.dtype), x)


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
