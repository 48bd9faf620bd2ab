"""Reductions over windows that slide along any axes."""

import functools
import math

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import computations, narrow_numbers
from lowering.arrays.limits import highest, lowest
from lowering.arrays.windows import Window, fold, windows
from lowering.narrow_formats import SHORT
from lowering.ops import bitcast, cast, constant, dtypes, emit
from lowering.registry import Trait, decomposition, on_promoted, rule
from lowering.targets import CONSUMER, ONNX, PORTABLE, Mode
from lowering.tensors import movement, ordering
from lowering.tensors.pooling import padding_of_images, pool


def _symbolic(combine, init, reduce_all):
    """A decomposition for windows of symbolic size, which no pooling op takes.

    `init` makes the neutral element of `combine` in a dtype; `reduce_all` reduces whole axes.
    """

    def decompose(x, **window):
        axes = windows(**window)
        is_known = [avals.is_static((w.size, w.stride, w.dilation)) for w in axes]
        known = [w if known else Window(1) for w, known in zip(axes, is_known, strict=True)]
        x = _reduce_window(x, init(x.dtype), combine, known)
        whole = [i for i, w in enumerate(axes) if not is_known[i] and w.is_whole(x.shape[i])]
        if whole:
            x = lax.expand_dims(reduce_all(x, whole), whole)
        rest = [
            Window(1) if known or i in whole else w
            for i, (w, known) in enumerate(zip(axes, is_known, strict=True))
        ]
        if len(whole) + sum(is_known) == len(axes):
            return x
        inits = [jnp.full((), init(x.dtype), x.dtype)]
        return fold([x], inits, lambda old, new: [combine(*old, *new)], rest)[0]

    return decompose


def _reduce_window(x, init, combine, axes):
    sizes, strides, paddings, base_dilations, dilations = zip(
        *((w.size, w.stride, (w.low, w.high), w.base_dilation, w.dilation) for w in axes),
        strict=True,
    )
    init = np.array(init, x.dtype)
    return lax.reduce_window(x, init, combine, sizes, strides, paddings, base_dilations, dilations)


_symbolic_max = _symbolic(lax.max, lowest, lax.reduce_max)
_symbolic_min = _symbolic(lax.min, highest, lax.reduce_min)
_symbolic_sum = _symbolic(lax.add, lambda dtype: 0, lax.reduce_sum)


def _is_symbolic(window):
    """Whether there is more than padding that TensorFlow's pooling ops take as ints only."""
    parameters = (values for name, values in window.items() if name != "padding")
    return not all(map(avals.is_static, parameters))


@rule("reduce_window_max", traits=Trait.PROMOTED)
def reduce_window_max(ctx, x, *, of_rectifier=False, **window):
    """NaN in a window gives NaN, and 0 is above -0.

    Numbers of a rectifier have no sign, so their bits are in their order, NaN last.
    """
    if _is_symbolic(window):
        return ctx.lower(_symbolic_max, x, avals=ctx.in_avals, **window)
    if 0 in ctx.out_aval.shape:
        return movement.broadcast(ctx, constant(0, x.dtype), ctx.out_aval.shape)
    if of_rectifier:
        # In compiled code NaN still has its sign.
        x = emit("Abs", x) if ctx.mode is Mode.COMPILED else x
        keys = bitcast(x, dtypes.signed(x.dtype))
        fill = bitcast(constant(-np.inf, x.dtype), keys.dtype)
    else:
        keys = _keys(x)
        fill = constant(keys.dtype.min, keys.dtype)
    max_pool = functools.partial(_pool, "MaxPool")
    maxima = pool(ctx, keys, ctx.in_avals[0].shape, windows(**window), fill, max_pool)
    return bitcast(maxima, x.dtype) if of_rectifier else _values(maxima, x.dtype)


@rule("reduce_window_min", traits=Trait.PROMOTED)
def reduce_window_min(ctx, x, **window):
    """The maximum in reversed order. NaN in a window gives NaN, and -0 is below 0."""
    if _is_symbolic(window):
        return ctx.lower(_symbolic_min, x, avals=ctx.in_avals, **window)
    if 0 in ctx.out_aval.shape:
        return reduce_window_max(ctx, x, **window)
    reverse = "LogicalNot" if x.dtype == tf.bool else "Neg" if x.dtype.is_floating else "Invert"
    return emit(reverse, reduce_window_max(ctx, emit(reverse, x), **window))


@rule("reduce_window_max", target=PORTABLE, dtypes=dtypes.FLOAT)
def reduce_window_max_natural(ctx, x, *, of_rectifier=False, **window):
    return _natural(ctx, "MaxPool", x, -np.inf, reduce_window_max, window)


def _by_shifts(combine, init):
    """A decomposition into elementwise ops, for dtypes that no pooling op takes."""

    def decompose(x, *, of_rectifier=False, **window):
        inits = [jnp.full((), init(x.dtype), x.dtype)]
        return fold([x], inits, lambda old, new: [combine(*old, *new)], windows(**window))[0]

    return decompose


for _name, _combine, _init in (
    ("reduce_window_max", lax.max, lowest),
    ("reduce_window_min", lax.min, highest),
    ("reduce_window_sum", lax.add, lambda dtype: 0),
):
    _dtypes = dtypes.INTEGER if "sum" in _name else (*dtypes.INTEGER, *dtypes.BOOL)
    decomposition(_name, target=CONSUMER, dtypes=_dtypes)(_by_shifts(_combine, _init))


# onnxruntime has no AveragePool of float64.
decomposition("reduce_window_sum", target=ONNX, dtypes=(np.float64,))(
    _by_shifts(lax.add, lambda dtype: 0)
)


@rule("reduce_window_min", target=PORTABLE, dtypes=dtypes.FLOAT)
def reduce_window_min_natural(ctx, x, **window):
    return emit("Neg", reduce_window_max_natural(ctx, emit("Neg", x), **window))


@rule("reduce_window_mean", target=PORTABLE)
def reduce_window_mean(ctx, x, **window):
    """A sum over windows, divided by their size; see `passes.fusion.natural`."""
    return _natural(ctx, "AvgPool", x, 0, _divided_sum, window)


@rule("reduce_window_mean_of_present", target=PORTABLE)
def reduce_window_mean_of_present(ctx, x, **window):
    """A sum over windows, divided by how many elements each has; see `passes.fusion.means`.

    TensorFlow's op for images leaves its padding out in the same way.
    """
    axes = windows(**window)
    is_of_images = len(axes) == 4 and not _is_symbolic(window) and 0 not in ctx.out_aval.shape
    padding = padding_of_images(ctx.in_avals[0].shape, axes) if is_of_images else None
    if padding is None:
        # The quotient in JAX would be found as this mean again.
        total = ctx.lower(_total, x, avals=ctx.in_avals, **window)
        return emit("RealDiv", total, ctx.lower(_counts, x, avals=ctx.in_avals, **window))
    sizes, strides = zip(*((w.size, w.stride) for w in axes[1:-1]), strict=True)
    return _pool("AvgPool", x, sizes, strides, padding)


def _total(x, **window):
    return lax.reduce_window_sum_p.bind(x, **window)


def _counts(x, **window):
    sizes = [
        dim if w != 1 else 1 for dim, w in zip(x.shape, window["window_dimensions"], strict=True)
    ]
    return _total(jnp.ones(sizes, x.dtype), **window)


def _divided_sum(ctx, x, **window):
    total = reduce_window_sum(ctx, x, **window)
    return emit("RealDiv", total, constant(math.prod(window["window_dimensions"]), x.dtype))


def _natural(ctx, op, x, fill, otherwise, window):
    """Windows reduced by a pooling op; it pads images itself where it can."""
    if _is_symbolic(window) or 0 in ctx.out_aval.shape:
        return otherwise(ctx, x, **window)
    shape, axes = ctx.in_avals[0].shape, windows(**window)
    padding = padding_of_images(shape, axes)
    of_volumes = _of_rank(op, 3) in ctx.target.ops_of_volumes and x.dtype == tf.float32
    is_one_op = len(axes) == 4 or (len(axes) == 5 and of_volumes)
    if is_one_op and (padding == "VALID" or (padding == "SAME" and op == "MaxPool")):
        sizes, strides = zip(*((w.size, w.stride) for w in axes[1:-1]), strict=True)
        return _pool(op, x, sizes, strides, padding)
    kernel = functools.partial(_pool, op)
    fill_of_padding = constant(fill, x.dtype)
    pooled = pool(ctx, x, shape, axes, fill_of_padding, kernel, most=3 if of_volumes else 2)
    return _filled(ctx, pooled, shape, axes, fill) if op == "MaxPool" else pooled


def _filled(ctx, pooled, shape, axes, fill):
    """Maxima with `fill` for windows of padding alone, where kernels give a finite number."""
    if all(window.always_has_elements(dim) for window, dim in zip(axes, shape, strict=True)):
        return pooled
    if avals.is_static([*shape, *(pad for window in axes for pad in (window.low, window.high))]):
        masks = [window.has_elements(dim) for window, dim in zip(axes, shape, strict=True)]
        mask = constant(functools.reduce(np.logical_and.outer, masks))
    else:
        sizes = [1 if w == Window(1) else dim for w, dim in zip(axes, shape, strict=True)]
        ones = movement.broadcast(ctx, constant(1, pooled.dtype), sizes)
        zero = constant(0, pooled.dtype)
        max_pool = functools.partial(_pool, "MaxPool")
        mask = emit("Greater", pool(ctx, ones, sizes, axes, zero, max_pool), zero)
    return emit("SelectV2", mask, pooled, constant(fill, pooled.dtype))


def _keys(x):
    """Integers in the order of the values, with NaN above everything and -inf as the lowest."""
    if x.dtype.is_floating:
        # In the total order, NaNs with a sign are below -inf. Once -inf is subtracted down to the
        # lowest integer, they wrap around to the highest ones.
        key = ordering.total_order(x)
        return emit("Sub", key, constant(_nan_payloads(x.dtype), key.dtype))
    if x.dtype in (tf.uint32, tf.uint64):
        key = bitcast(x, dtypes.carrier(x.dtype))
        return emit("BitwiseXor", key, constant(key.dtype.min, key.dtype))
    return cast(x, tf.uint8) if x.dtype == tf.bool else x


def _values(key, dtype):
    """The inverse of `_keys`."""
    if dtype.is_floating:
        key = emit("AddV2", key, constant(_nan_payloads(dtype), key.dtype))
        return ordering.from_total_order(key, dtype)
    if dtype in (tf.uint32, tf.uint64):
        return bitcast(emit("BitwiseXor", key, constant(key.dtype.min, key.dtype)), dtype)
    return cast(key, dtype)


def _nan_payloads(dtype):
    """How many NaNs of one sign there are."""
    return (1 << ml_dtypes.finfo(dtype.as_numpy_dtype).nmant) - 1


decomposition("reduce_window_max", dtypes=dtypes.COMPLEX)(
    _by_shifts(lax.max, lambda dtype: -np.inf)
)
decomposition("reduce_window_min", dtypes=dtypes.COMPLEX)(_by_shifts(lax.min, lambda dtype: np.inf))


@rule("reduce_window_sum", traits=Trait.LINEAR)
def reduce_window_sum(ctx, x, **window):
    """Sums of low precision are accumulated in float32 and rounded once."""
    if _is_symbolic(window):
        wide = cast(x, tf.float32) if x.dtype in (tf.float16, tf.bfloat16) else x
        aval = jax.ShapeDtypeStruct(ctx.in_avals[0].shape, wide.dtype.as_numpy_dtype)
        return cast(ctx.lower(_symbolic_sum, wide, avals=[aval], **window), x.dtype)
    axes = windows(**window)
    if 0 in ctx.out_aval.shape:
        return movement.broadcast(ctx, constant(0, x.dtype), ctx.out_aval.shape)
    if x.dtype.is_complex:
        real, imag = (emit(part, x, Tout=x.dtype.real_dtype) for part in ("Real", "Imag"))
        return emit("Complex", _sum(ctx, real, axes), _sum(ctx, imag, axes), Tout=x.dtype)
    if x.dtype in (tf.float16, tf.bfloat16):
        return cast(_sum(ctx, cast(x, tf.float32), axes), x.dtype)
    if x.dtype.is_floating:
        return _sum(ctx, x, axes)
    if x.dtype.size < 8:
        return cast(_integer_sum(ctx, x, axes), x.dtype)
    # The halves of 64-bit integers are summed apart, so that their sums are exact in float64.
    bits = bitcast(x, tf.int64)
    low = emit("BitwiseAnd", bits, constant((1 << 32) - 1, tf.int64))
    high = emit("RightShift", bits, constant(32, tf.int64))
    high = emit("LeftShift", _integer_sum(ctx, high, axes), constant(32, tf.int64))
    return bitcast(emit("AddV2", _integer_sum(ctx, low, axes), high), x.dtype)


def _integer_sum(ctx, x, axes):
    """Sums of integers of up to 32 bits: exact in float64, once rounded to a whole number."""
    return cast(emit("Rint", _sum(ctx, cast(x, tf.float64), axes)), tf.int64)


def _sum(ctx, x, axes):
    """A sum as the mean that TensorFlow has a pooling op for, times the size of the window."""
    average_pool = functools.partial(_pool, "AvgPool")
    mean = pool(ctx, x, ctx.in_avals[0].shape, axes, constant(0, x.dtype), average_pool)
    size = math.prod(window.size for window in axes)
    return emit("Mul", mean, constant(size, x.dtype)) if size != 1 else mean


def _pool(op, x, sizes, strides, padding="VALID"):
    attributes = {"ksize": [1, *sizes, 1], "strides": [1, *strides, 1], "padding": padding}
    return emit(_of_rank(op, len(sizes)), x, **attributes)


def _of_rank(op, axes):
    """The name of a pooling op for a number of spatial axes."""
    return f"{op}3D" if axes == 3 else op


@on_promoted("reduce_window_sum", dtypes=SHORT)
def reduce_window_sum_short(x, *, primitive, dtypes, storages, **window):
    """Sums wrap around once."""
    return narrow_numbers.fit(primitive.bind(x, **window), dtypes[0], storages[0])


@on_promoted("reduce_window_max", "reduce_window_min", dtypes=SHORT)
def reduce_window_max_short(x, *, primitive, dtypes, storages, **window):
    """The maximum of padding alone is the least number."""
    result = primitive.bind(x, **window)
    has_elements = all(
        avals.is_static((w.size, w.low, w.high))
        and w.base_dilation == w.dilation == 1
        and max(w.low, w.high) < w.size
        for w in windows(**window)
    )
    return result if has_elements else narrow_numbers.clip(result, dtypes[0])


@decomposition("reduce_window")
def reduce_window(*operands_and_inits, jaxpr, consts, **window):
    """Any function, of any number of operands, in the order in which XLA applies it."""
    count = len(operands_and_inits) // 2
    operands, inits = operands_and_inits[:count], operands_and_inits[count:]
    if not isinstance(jaxpr, jex_core.ClosedJaxpr):
        jaxpr = jex_core.ClosedJaxpr(jaxpr, consts)
    combine = computations.elementwise(jaxpr, operands[0].ndim)
    return fold(operands, inits, combine, windows(**window))
