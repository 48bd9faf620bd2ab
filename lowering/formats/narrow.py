"""Numbers of eight bits or fewer: float8, float4, int4 and int2.

TensorFlow can do little with them. It has no dtype for some, no conversion for others, and no
arithmetic for any, and XLA's packed int4 is not the int4 of TensorFlow. So in a program tensors
hold them as float32, int8 and uint8, in which every value is exact, and in which all rules work.

An equation on them becomes an equation on what holds them, of which the results are rounded once,
or wrapped around, to the narrow dtype. Nothing is done to results that only select or move values.
XLA does the same on a CPU. What enters and leaves the program is converted; see `boundary`.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import jax_compat
from lowering.arrays import computations
from lowering.formats.rounding import (
    HAS_CAST,
    clip,
    decode,
    fit,
    from_bits,
    has_negative_nan,
    hold,
    infinity_is_nan,
    to_bits,
    width,
)
from lowering.ops import cast, constant, dtypes, emit
from lowering.ops.broadcasting import Broadcastable

Run = Callable[[jex_core.JaxprEqn, Sequence[Any]], Sequence[Any]]

# Larger constants are not made wider in the graph.
_LARGE_BYTES = 4096

# Primitives whose results are among the values of their operands.
_EXACT = frozenset(
    """
    all_gather all_to_all approx_top_k broadcast_in_dim clamp concatenate copy copy_p cummax cummin
    device_put dynamic_slice dynamic_update_slice expand_dims layout_constraint max min name
    optimization_barrier pad relayout reshape reshard rev scatter select_n sharding_constraint
    slice split squeeze stop_gradient tile transpose with_memory_space_constraint
    """.split()
)

# Primitives that are rounded after each step of what they are decomposed into.
_STEPWISE = frozenset({"call_hi_primitive", "exp2", "integer_pow", "nextafter"})


def is_on_narrow(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an operand or a result of an equation is of a narrow dtype."""
    return any(_is_narrow_aval(var.aval) for var in (*eqn.invars, *eqn.outvars)) and (
        eqn.primitive.name not in _STEPWISE
    )


def known(value: Any, dtype: Any) -> Any:
    """A known operand as it is held; a large array of float8 stays one in the graph.

    Args:
      value: an array of `dtype`, or of what holds it.
      dtype: any dtype.
    """
    if not dtypes.is_narrow(dtype):
        return value
    is_large = value.nbytes > _LARGE_BYTES and not tf.executing_eagerly()
    if is_large and value.dtype == dtype and dtype in HAS_CAST:
        return tf.cast(constant(value), dtypes.to_tf(dtype))
    return hold(value, dtype)


def apply(
    run: Run, lower: Callable[..., Any], eqn: jex_core.JaxprEqn, operands: Sequence[Any]
) -> list[tf.Tensor]:
    """Lowers an equation on narrow dtypes.

    Args:
      run: lowers an equation on ordinary dtypes; returns its results, as tensors or arrays.
      lower: applies a function written in JAX to a sequence of tensors.
      eqn: the equation.
      operands: its operands, as they are held.
    """
    special = _SPECIAL.get(eqn.primitive.name)
    if special is not None:
        operands = [x.full() if isinstance(x, Broadcastable) else x for x in operands]
        results = special(run, lower, eqn, operands)
        return results if isinstance(results, list) else [results]
    return _apply_to_held(run, eqn, operands)


def _apply_to_held(run, eqn, operands):
    results = _run_on_held(run, eqn, operands)
    if eqn.primitive.name in _EXACT:
        return results
    return [
        fit(x, var.aval.dtype) if _is_narrow_aval(var.aval) else x
        for x, var in zip(results, eqn.outvars, strict=True)
    ]


def _run_on_held(run, eqn, operands):
    """The results of an equation on what holds its operands, not rounded yet."""
    held = jax_compat.replace_dtypes(eqn, dtypes.held)
    held = held.replace(params={name: _held_param(x) for name, x in held.params.items()})
    return [_tensor(x) for x in run(held, operands)]


def _convert(run, lower, eqn, operands):
    """Rounds once; from floats to integers NaN gives zero and values out of range saturate."""
    x, source, target = _tensor(operands[0]), eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
    if source == dtypes.E8M0 and target in (np.bool_, np.float64, np.complex128):
        # The least power of two is subnormal in float32, and would be taken for zero.
        numbers = decode(to_bits(x, source), source, np.float64)
        in_double = jax_compat.replace_dtypes(
            eqn, lambda dtype: np.dtype(np.float64) if dtype == source else dtype
        )
        return _tensor(run(in_double, [numbers])[0])
    if target not in dtypes.NARROW_FLOAT:
        if source == dtypes.FLOAT4 and jnp.issubdtype(target, np.integer):
            # XLA takes the largest number of this format for what does not fit an integer.
            is_largest = emit(
                "Equal", emit("Abs", x), constant(float(ml_dtypes.finfo(source).max), x.dtype)
            )
            operands = [emit("SelectV2", is_largest, emit("Mul", x, constant(np.inf, x.dtype)), x)]
        (result,) = _run_on_held(run, eqn, operands)
        if not dtypes.is_narrow(target):
            return result
        is_inexact = x.dtype.is_floating or x.dtype.is_complex
        return clip(result, target) if is_inexact else fit(result, target)
    if x.dtype.is_complex:
        x = emit("Real", x, Tout=x.dtype.real_dtype)
    return fit(x if x.dtype == tf.float64 else cast(x, tf.float32), target)


def _bitcast_convert(run, lower, eqn, operands):
    (x,), source, target = operands, eqn.invars[0].aval, eqn.outvars[0].aval
    widths = {"width": width(source.dtype), "new_width": width(target.dtype)}
    if dtypes.is_narrow(source.dtype):
        x = to_bits(_tensor(x), source.dtype)
        source = jax.core.ShapedArray(source.shape, np.dtype(np.uint8))
    dtype = np.dtype(np.uint8) if dtypes.is_narrow(target.dtype) else target.dtype
    bits = _tensor(lower(_regroup, [x], [source], {**widths, "dtype": dtype}))
    return from_bits(bits, target.dtype) if dtypes.is_narrow(target.dtype) else bits


def _regroup(bits, *, width, new_width, dtype):
    """Groups of `width` bits as groups of `new_width` bits, the least significant first.

    Groups of eight bits or fewer are of dtype uint8, unless an array of `dtype` is wanted.
    """
    part, new_part = min(width, 8), min(new_width, 8)
    if width > 8:
        bits = lax.bitcast_convert_type(bits, np.uint8)
    elif new_width > width:
        bits = lax.reshape(bits, (*bits.shape[:-1], new_width // new_part, new_part // part))
        groups = [
            lax.index_in_dim(bits, i, -1, keepdims=False) << np.uint8(part * i)
            for i in range(new_part // part)
        ]
        bits = functools.reduce(lax.bitwise_or, groups)
        if new_width <= 8:
            bits = lax.squeeze(bits, [bits.ndim - 1])
    if new_width < width:
        size = width // new_width
        shifts = np.arange(0, part, new_part, dtype=np.uint8)
        shape = (*bits.shape[: bits.ndim - (width > 8)], size)
        bits = (bits[..., None] >> shifts) & np.uint8((1 << new_part) - 1)
        bits = lax.reshape(bits, shape)
    return lax.bitcast_convert_type(bits, dtype)


def _on_bits(run, lower, eqn, operands):
    """Computes on unsigned integers of eight bits that have the same low bits."""
    dtype = eqn.invars[0].aval.dtype
    operands = [to_bits(_tensor(x), dtype) for x in operands]
    (bits,) = run(jax_compat.replace_dtypes(eqn, _uint8_for_narrow), operands)
    if eqn.primitive.name == "clz":
        bits = emit("Sub", _tensor(bits), constant(8 - width(dtype), np.uint8), modular=True)
    return from_bits(_tensor(bits), dtype)


def _uint8_for_narrow(dtype):
    return np.dtype(np.uint8) if dtypes.is_narrow(dtype) else dtype


def _population_count(run, lower, eqn, operands):
    """XLA counts the bits of four as those of eight, and those of two as they are."""
    if width(eqn.invars[0].aval.dtype) == 2:
        return _on_bits(run, lower, eqn, operands)
    return _apply_to_held(run, eqn, operands)


def _mulhi(run, lower, eqn, operands):
    """As for `population_count`, XLA takes the upper half of sixteen bits where there are four."""
    dtype = eqn.invars[0].aval.dtype
    if width(dtype) == 2:
        product = emit("Mul", *map(_tensor, operands), modular=True)
        return fit(emit("RightShift", product, constant(2, product.dtype)), dtype)
    return _apply_to_held(run, eqn, operands)


def _shift_right_arithmetic(run, lower, eqn, operands):
    """The highest bit is a sign in unsigned integers too."""
    dtype = eqn.invars[0].aval.dtype
    signed = np.dtype(f"int{width(dtype)}")
    x, shift = (to_bits(_tensor(x), dtype) for x in operands)
    eqn = jax_compat.replace_dtypes(eqn, lambda d: np.dtype(np.int8) if d == dtype else d)
    (result,) = run(eqn, [from_bits(x, signed), cast(shift, tf.int8)])
    return fit(_tensor(result), dtype)


def _gather(run, lower, eqn, operands):
    """What is out of bounds is filled with a number of the narrow dtype."""
    dtype, fill_value = eqn.outvars[0].aval.dtype, eqn.params["fill_value"]
    if dtypes.is_narrow(dtype):
        if fill_value is None:
            fill_value = _fill_value(dtype)
        held_value = hold(np.asarray(fill_value).astype(dtype), dtype).item()
        eqn = eqn.replace(params={**eqn.params, "fill_value": held_value})
    return _run_on_held(run, eqn, operands)


def _fill_value(dtype):
    if dtype in dtypes.NARROW_FLOAT:
        return np.nan
    info = ml_dtypes.iinfo(dtype)
    return info.min if dtype in dtypes.NARROW_SIGNED else info.max


def _logistic(run, lower, eqn, operands):
    """XLA rounds each step."""
    return _tensor(lower(_logistic_steps, operands, [eqn.invars[0].aval], {}))


def _logistic_steps(x):
    one = np.ones((), x.dtype)
    return lax.div(jnp.broadcast_to(one, x.shape), one + lax.exp(-x))


def _reduce_precision(run, lower, eqn, operands):
    """The exponents of float16 have as many bits as those of the widest float8."""
    dtype = eqn.invars[0].aval.dtype
    if dtype == dtypes.E8M0:
        return _apply_to_held(run, eqn, operands)
    half = jax_compat.replace_dtypes(eqn, lambda d: np.dtype(np.float16) if d == dtype else d)
    (result,) = run(half, [cast(_tensor(operands[0]), tf.float16)])
    return fit(cast(_tensor(result), tf.float32), dtype)


def _extremum(run, lower, eqn, operands):
    """Of nothing, the maximum is the least number, also if that is finite."""
    aval, dtype = eqn.invars[0].aval, eqn.outvars[0].aval.dtype
    if dtype == dtypes.E8M0:
        return _from_infinity(run, lower, eqn, operands)
    (x,) = _run_on_held(run, eqn, operands)
    sizes = [aval.shape[axis] for axis in eqn.params["axes"]]
    if all(isinstance(size, int) and size for size in sizes):
        return x
    if dtype in dtypes.NARROW_FLOAT and np.isinf(hold(np.array(np.inf).astype(dtype), dtype)):
        return x
    return clip(x, dtype)


def _from_infinity(run, lower, eqn, operands):
    """XLA starts from an infinity; in a format in which that is NaN, nothing else comes out."""
    (result,) = results = _apply_to_held(run, eqn, operands)
    dtype = eqn.invars[0].aval.dtype
    if dtype != dtypes.E8M0 and not (
        eqn.primitive.name == "cumlogsumexp" and infinity_is_nan(dtype)
    ):
        return results
    nothing = np.nan if result.dtype.is_floating else 0
    return tf.fill(tf.shape(result), constant(nothing, result.dtype))


def _ordered(run, lower, eqn, operands):
    """The NaN of a format without negative zero has its bits, and is the least number."""
    lowered = [
        _replace(_tensor(x), emit("NotEqual", _tensor(x), _tensor(x)), -np.inf)
        if has_negative_nan(var.aval.dtype)
        else x
        for x, var in zip(operands, eqn.invars, strict=True)
    ]
    return [
        _replace(x, emit("Equal", x, constant(-np.inf, x.dtype)), np.nan)
        if has_negative_nan(var.aval.dtype)
        else x
        for x, var in zip(_run_on_held(run, eqn, lowered), eqn.outvars, strict=True)
    ]


def _replace(x, where, value):
    return emit("SelectV2", where, constant(value, x.dtype), x)


def _held_param(value):
    if isinstance(value, jex_core.ClosedJaxpr):
        return _held_computation(value)
    if isinstance(value, jex_core.Jaxpr):
        return _held_computation(jex_core.ClosedJaxpr(value, ())).jaxpr
    is_dtype = isinstance(value, np.dtype) or (
        isinstance(value, type) and issubclass(value, np.generic)
    )
    return dtypes.held(np.dtype(value)) if is_dtype else value


@functools.lru_cache(maxsize=1024)
def _held_computation(computation):
    """A computation on scalars of narrow dtypes as one on what holds them.

    Each step is rounded, unless the computation is one that reductions know.
    """
    dtypes_in = [var.aval.dtype for var in computation.invars]
    fun = jex_core.jaxpr_as_fun(computation)

    def on_held(*operands):
        if computations.monoid(computation):
            (eqn,) = computation.eqns
            return eqn.primitive.bind(*operands, **eqn.params)
        operands = map(lax.convert_element_type, operands, dtypes_in)
        return [lax.convert_element_type(x, dtypes.held(x.dtype)) for x in fun(*operands)]

    avals = [
        jax.ShapeDtypeStruct(var.aval.shape, dtypes.held(var.aval.dtype))
        for var in computation.invars
    ]
    with jax_compat.enable_x64():
        return jax.jit(on_held).trace(*avals).jaxpr


def _is_narrow_aval(aval):
    return dtypes.is_narrow(getattr(aval, "dtype", None))


def _tensor(x):
    """A value as a tensor; one that is left to be broadcast stays so."""
    if isinstance(x, Broadcastable):
        return x.tensor
    return x if isinstance(x, tf.Tensor) else constant(x)


_SPECIAL = {
    "argmax": _from_infinity,
    "argmin": _from_infinity,
    "bitcast_convert_type": _bitcast_convert,
    "clz": _on_bits,
    "convert_element_type": _convert,
    "cumlogsumexp": _from_infinity,
    "cummax": _from_infinity,
    "cummin": _from_infinity,
    "gather": _gather,
    "logistic": _logistic,
    "mulhi": _mulhi,
    "population_count": _population_count,
    "reduce_max": _extremum,
    "reduce_min": _extremum,
    "reduce_precision": _reduce_precision,
    "shift_right_arithmetic": _shift_right_arithmetic,
    "shift_right_logical": _on_bits,
    "sort": _ordered,
    "top_k": _ordered,
}
