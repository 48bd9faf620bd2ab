"""Convolutions of any rank, layout, stride, padding, dilation and grouping."""

import math

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays.windows import Window, windows
from lowering.context import Context
from lowering.ops import cast, constant, integers, move, tuning
from lowering.ops.dtypes import COMPLEX, LOW_PRECISION
from lowering.registry import Trait, rule
from lowering.targets import XLA
from lowering.tensors import movement
from lowering.tensors.contractions import compute_dtypes
from lowering.tensors.im2col import im2col

# The dtypes of TensorFlow's kernels; those of low precision are computed in float32, as TensorFlow
# would accumulate in low precision. The float64 kernel is far slower than a MatMul once compiled.
_KERNEL_DTYPES = (*LOW_PRECISION, np.float32)


@rule("conv_general_dilated", traits=Trait.CONTRACTION)
def conv_general_dilated(ctx, lhs, rhs, **params):
    """One of TensorFlow's convolutions where it fits, else simpler primitives.

    Integers wrap around, booleans are or-ed, low precision is accumulated in float32.
    """
    kernel = _kernel(ctx, **params)
    if kernel is None:
        return _lower_decomposed(ctx, lhs, rhs, **params)
    axes = _axes(ctx.in_avals[1].shape, **params)
    dtype = lhs.dtype
    lhs, rhs = cast(lhs, tf.float32), cast(rhs, tf.float32)
    return cast(kernel(ctx, lhs, rhs, axes, params["dimension_numbers"]), dtype)


def _lower_decomposed(ctx, lhs, rhs, *, precision, out_sharding=None, **params):
    """`precision` is a hint that changes nothing on the CPU."""
    del precision, out_sharding
    return ctx.lower(_decomposed, lhs, rhs, avals=ctx.in_avals, **params)


def _axes(
    rhs_shape, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, **_
):
    """The window along each spatial axis."""
    sizes = [rhs_shape[axis] for axis in dimension_numbers.rhs_spec[2:]]
    return windows(sizes, window_strides, padding, lhs_dilation, rhs_dilation)


def _kernel(ctx, *, dimension_numbers, feature_group_count, batch_group_count, **params):
    """The function that emits a TensorFlow kernel for this convolution, or None."""
    lhs, rhs, out = *ctx.in_avals, ctx.out_aval
    axes = _axes(rhs.shape, dimension_numbers=dimension_numbers, **params)
    amounts = [amount for window in axes for amount in (window.low, window.high)]
    if not (lhs.dtype == rhs.dtype == out.dtype and lhs.dtype in _KERNEL_DTYPES):
        return None
    if batch_group_count > 1 or len(axes) not in (1, 2, 3) or not avals.is_static(amounts):
        return None
    if any(0 in aval.shape for aval in (lhs, rhs, out)):
        return None
    is_grouped = feature_group_count > 1
    if not is_grouped and tuning.convolves_by_matmul(ctx.target, lhs, rhs, out, dimension_numbers):
        return _matmul
    if any(window.base_dilation > 1 for window in axes):
        lhs_sizes = [lhs.shape[axis] for axis in dimension_numbers.lhs_spec[2:]]
        fits = not is_grouped and _is_gradient_of_input(axes, lhs_sizes)
        return _conv2d_backprop_input if fits else None
    if not is_grouped and _is_gradient_of_filter(lhs, out, axes, dimension_numbers):
        return _conv2d_backprop_filter
    if min(amounts) < 0:
        return None
    if len(axes) == 3:
        has_dilation = any(window.dilation > 1 for window in axes)
        return None if is_grouped or has_dilation or ctx.target.name == XLA.name else _conv3d
    window = axes[0]
    if (
        rhs.shape[dimension_numbers.rhs_spec[1]] == 1
        and is_grouped
        and all((w.stride, w.dilation) == (window.stride, 1) for w in axes)
    ):
        return _depthwise_conv2d
    return _conv2d


def is_conv2d(ctx: Context) -> bool:
    """Whether a convolution becomes a Conv2D, and nothing else after it."""
    out_spec = ctx.eqn.params["dimension_numbers"].out_spec
    is_nhwc = _channels_last(out_spec) == (0, 1, 2, 3)
    return is_nhwc and _kernel(ctx, **ctx.eqn.params) is _conv2d


def _arranged(ctx, x, axes, spatial=None):
    """`x` with its axes in this order.

    Args:
      ctx: the context of the rule.
      x: a tensor.
      axes: the axes of `x` in the new order.
      spatial: the place of the first spatial axis. A single spatial axis gets another before it.
    """
    x = movement.transpose(ctx, x, axes)
    return move("ExpandDims", x, integers(spatial)) if len(axes) == 3 else x


def _restored(ctx, x, order, axis):
    """The inverse of `_arranged`: axis `order[i]` of the result is axis i of `x`."""
    if len(order) == 3:
        x = move("Squeeze", x, axis=[axis])
    return movement.transpose(ctx, x, np.argsort(order))


def _channels_last(spec):
    return (spec[0], *spec[2:], spec[1])


def _planar(axes):
    """Two windows, where a single axis got another before it."""
    return axes if len(axes) == 2 else [Window(1), *axes]


def _attributes(axes):
    """Strides, padding and dilations as attributes of TensorFlow's convolutions."""
    axes = _planar(axes)
    amounts = [amount for window in axes for amount in (window.low, window.high)]
    return {
        "strides": [1, *(window.stride for window in axes), 1],
        "padding": "EXPLICIT" if any(amounts) else "VALID",
        "explicit_paddings": [0, 0, *amounts, 0, 0] if any(amounts) else [],
        "dilations": [1, *(window.dilation for window in axes), 1],
    }


def _conv2d(ctx, lhs, rhs, axes, dimension_numbers):
    """Groups follow from the shapes."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x = _arranged(ctx, lhs, _channels_last(lhs_spec), 1)
    kernel = _arranged(ctx, rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]), 0)
    y = tf.raw_ops.Conv2D(input=x, filter=kernel, **_attributes(axes))
    return _restored(ctx, y, _channels_last(out_spec), 1)


def _matmul(ctx, lhs, rhs, axes, dimension_numbers):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x = im2col(ctx, movement.transpose(ctx, lhs, _channels_last(lhs_spec)), axes)
    kernel = movement.transpose(ctx, rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    features = ctx.out_aval.shape[out_spec[1]]
    y = tf.raw_ops.MatMul(a=x, b=movement.reshape(ctx, kernel, (x.shape[1], features)))
    y = movement.reshape(ctx, y, [ctx.out_aval.shape[axis] for axis in _channels_last(out_spec)])
    return movement.transpose(ctx, y, np.argsort(_channels_last(out_spec)))


def _depthwise_conv2d(ctx, lhs, rhs, axes, dimension_numbers):
    """Each group has one channel."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x = _arranged(ctx, lhs, _channels_last(lhs_spec), 1)
    channels = ctx.in_avals[0].shape[lhs_spec[1]]
    kernel = _arranged(ctx, rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]), 0)
    multiplier = ctx.out_aval.shape[out_spec[1]] // channels
    shape = (*(window.size for window in _planar(axes)), channels, multiplier)
    kernel = movement.reshape(ctx, kernel, shape)
    y = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=kernel, **_attributes(axes))
    return _restored(ctx, y, _channels_last(out_spec), 1)


def _conv3d(ctx, lhs, rhs, axes, dimension_numbers):
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x = movement.transpose(ctx, lhs, _channels_last(lhs_spec))
    kernel = movement.transpose(ctx, rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    shape = [ctx.in_avals[0].shape[axis] for axis in _channels_last(lhs_spec)]
    is_same = all(_is_same(window, dim) for window, dim in zip(axes, shape[1:-1], strict=True))
    if not is_same:
        paddings = [(0, 0), *((window.low, window.high) for window in axes), (0, 0)]
        padded = [shape[0], *(w.padded(d) for w, d in zip(axes, shape[1:-1])), shape[-1]]
        x = movement.pad(ctx, x, shape, constant(0, x.dtype), paddings, padded)
    y = tf.raw_ops.Conv3D(
        input=x,
        filter=kernel,
        strides=[1, *(window.stride for window in axes), 1],
        padding="SAME" if is_same else "VALID",
    )
    return movement.transpose(ctx, y, np.argsort(_channels_last(out_spec)))


def _is_same(window, dim):
    """Whether the padding is what TensorFlow means by SAME."""
    if not isinstance(dim, int):
        return False
    amount = max((-(-dim // window.stride) - 1) * window.stride + window.extent - dim, 0)
    return (window.low, window.high) == (amount // 2, amount - amount // 2)


def _is_gradient_of_input(axes, sizes):
    """Whether `lhs_dilation` makes this the gradient of a convolution by its input."""
    if len(axes) > 2 or any((window.stride, window.dilation) != (1, 1) for window in axes):
        return False
    # What lies outside of the gradient's reach is zero, but there must be something inside.
    cores = [_within_reach(window).count(dim) for window, dim in zip(axes, sizes, strict=True)]
    return all(not isinstance(core, int) or core > 0 for core in cores)


def _within_reach(window):
    """The window without padding in which no element has any effect."""
    reach = window.size - 1
    low, high = min(window.low, reach), min(window.high, reach)
    return Window(window.size, low=low, high=high, base_dilation=window.base_dilation)


def _conv2d_backprop_input(ctx, lhs, rhs, axes, dimension_numbers):
    """What is spread out here is the stride of the convolution whose gradient this is."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    gradient = _arranged(ctx, lhs, _channels_last(lhs_spec), 1)
    kernel = _arranged(ctx, rhs, (*rhs_spec[2:], rhs_spec[0], rhs_spec[1]), 0)
    kernel = move("ReverseV2", kernel, integers([0, 1]))
    sizes = [ctx.in_avals[0].shape[axis] for axis in lhs_spec[2:]]
    out_shape = [ctx.out_aval.shape[axis] for axis in _channels_last(out_spec)]
    if len(axes) == 1:
        sizes, out_shape = [1, *sizes], [out_shape[0], 1, *out_shape[1:]]
    cores = [_within_reach(window) for window in _planar(axes)]
    core_sizes = [core.count(dim) for core, dim in zip(cores, sizes, strict=True)]
    core_shape = [out_shape[0], *core_sizes, out_shape[-1]]
    forward = [
        Window(w.size, w.base_dilation, w.size - 1 - w.low, w.size - 1 - w.high) for w in cores
    ]
    y = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=ctx.shape(core_shape),
        filter=kernel,
        out_backprop=gradient,
        **_attributes(forward),
    )
    outside = [
        (window.low - core.low, window.high - core.high)
        for window, core in zip(_planar(axes), cores, strict=True)
    ]
    paddings = [(0, 0), *outside, (0, 0)]
    y = movement.pad(ctx, y, core_shape, constant(0, y.dtype), paddings, out_shape)
    return _restored(ctx, y, _channels_last(out_spec), 1)


def _is_gradient_of_filter(lhs, out, axes, dimension_numbers):
    """Whether a window larger than the result makes this the gradient by a filter."""
    if len(axes) > 2 or not avals.is_static((*lhs.shape, *out.shape)):
        return False
    inputs = [lhs.shape[axis] for axis in dimension_numbers.lhs_spec[2:]]
    filters = [out.shape[axis] for axis in dimension_numbers.out_spec[2:]]
    forward = _forward(axes, filters)
    return (
        math.prod(window.size for window in axes) > math.prod(filters)
        and all(window.stride == 1 and window.low >= 0 for window in axes)
        and [w.count(dim) for w, dim in zip(forward, inputs)] == [w.size for w in axes]
    )


def _forward(axes, filters):
    """The windows of the convolution whose gradient by its filter this is.

    A negative amount of padding stands for elements that the strides of that convolution skip.
    """
    return [
        Window(size, window.dilation, window.low, max(window.high, 0))
        for size, window in zip(filters, axes, strict=True)
    ]


def _conv2d_backprop_filter(ctx, lhs, rhs, axes, dimension_numbers):
    """The contracted features are the batch of that convolution."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    x = _arranged(ctx, lhs, (lhs_spec[1], *lhs_spec[2:], lhs_spec[0]), 1)
    gradient = _arranged(ctx, rhs, (rhs_spec[1], *rhs_spec[2:], rhs_spec[0]), 1)
    order = (*out_spec[2:], out_spec[0], out_spec[1])
    shape = [ctx.out_aval.shape[axis] for axis in order]
    y = tf.raw_ops.Conv2DBackpropFilter(
        input=x,
        filter_sizes=integers([1, *shape] if len(axes) == 1 else shape),
        out_backprop=gradient,
        **_attributes(_forward(axes, shape[:-2])),
    )
    return _restored(ctx, y, order, 0)


def _decomposed(
    lhs,
    rhs,
    *,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    dimension_numbers,
    feature_group_count,
    batch_group_count,
    preferred_element_type,
):
    """The same convolution in simpler primitives; written in JAX."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    result_dtype = preferred_element_type or lhs.dtype
    lhs_dtype, rhs_dtype, dtype = compute_dtypes(lhs.dtype, rhs.dtype, np.dtype(result_dtype))
    lhs = lax.transpose(lhs, _channels_last(lhs_spec))
    rhs = lax.transpose(rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    config = [(*p, dilation - 1) for p, dilation in zip(padding, lhs_dilation, strict=True)]
    lhs = lax.pad(lhs, jnp.zeros((), lhs.dtype), [(0, 0, 0), *config, (0, 0, 0)])
    if batch_group_count > 1:
        # Each group of the batch has its own features: those of a group.
        batch, *spatial, features = lhs.shape
        lhs = lhs.reshape(batch_group_count, batch // batch_group_count, *spatial, features)
        lhs = jnp.moveaxis(lhs, 0, -2)
        lhs = lhs.reshape(*lhs.shape[:-2], batch_group_count * features)
    axes = windows(rhs.shape[:-2], window_strides, [(0, 0)] * len(config), None, rhs_dilation)
    groups = feature_group_count * batch_group_count
    if dtype in COMPLEX:
        out = _convolve_complex(lhs, rhs, axes, groups, dtype)
    else:
        out = _convolve(lhs.astype(lhs_dtype), rhs.astype(rhs_dtype), axes, groups).astype(dtype)
    out = lax.transpose(out, np.argsort(_channels_last(out_spec)))
    return lax.convert_element_type(out, result_dtype)


def _convolve_complex(lhs, rhs, axes, groups, dtype):
    """Gauss's three real products; JAX does the same on the CPU, with sums in the given dtype."""
    x, y, a, b = lax.real(lhs), lax.imag(lhs), lax.real(rhs), lax.imag(rhs)
    real = np.finfo(dtype).dtype
    both, first, second = (
        _convolve(p.astype(real), q.astype(real), axes, groups)
        for p, q in ((x + y, a), (x, b - a), (y, a + b))
    )
    return lax.complex(both - second, both + first)


def _convolve(lhs, rhs, axes, groups):
    """Convolves without padding, layouts as in TensorFlow.

    Args:
      lhs: [batch, ..., features].
      rhs: [..., features of a group, features].
      axes: the window along each spatial axis.
      groups: the number of groups of features.

    Returns:
      [batch, ..., features] in the dtype of the operands, or in float32 for low precision.
    """
    if lhs.dtype in LOW_PRECISION:
        lhs, rhs = lhs.astype(np.float32), rhs.astype(np.float32)
    counts = [window.count(dim) for window, dim in zip(axes, lhs.shape[1:-1], strict=True)]
    shape = (lhs.shape[0], *counts, rhs.shape[-1])
    if 0 in (*lhs.shape, *rhs.shape, *shape):
        return jnp.zeros(shape, lhs.dtype)
    # Two spatial axes may be left to a kernel. Along the others each element of the window becomes
    # features of its own, so that what is contracted there is contracted with the features.
    left = 2 if lhs.dtype == np.float32 else 0
    lhs = lhs.reshape(*lhs.shape[:-1], groups, lhs.shape[-1] // groups)
    while len(axes) > left:
        axis = lhs.ndim - 2 - len(axes)
        lhs = _patches(lhs, axis, axes[0], counts[-len(axes)])
        rhs = jnp.moveaxis(rhs, 0, -3)
        rhs = rhs.reshape(*rhs.shape[:-3], rhs.shape[-3] * rhs.shape[-2], rhs.shape[-1])
        axes = axes[1:]
    if not axes:
        return _contract(lhs, rhs, groups).reshape(shape)
    batch, spatial = lhs.shape[: -2 - len(axes)], lhs.shape[-2 - len(axes) : -2]
    lhs = lhs.reshape(math.prod(batch), *spatial, groups * lhs.shape[-1])
    first, *middle, last = range(lhs.ndim)
    out = lax.conv_general_dilated(
        lhs,
        rhs,
        [window.stride for window in axes],
        "VALID",
        rhs_dilation=[window.dilation for window in axes],
        dimension_numbers=lax.ConvDimensionNumbers(
            (first, last, *middle), (last, last - 1, *range(len(axes))), (first, last, *middle)
        ),
        feature_group_count=groups,
    )
    return out.reshape(shape)


def _patches(lhs, axis, window, count):
    """Puts the elements of each window along an axis side by side in the last one."""
    span = (count - 1) * window.stride + 1
    starts = range(0, window.extent, window.dilation)
    parts = [lax.slice_in_dim(lhs, i, i + span, window.stride, axis) for i in starts]
    return jnp.concatenate(parts, axis=-1)


def _contract(lhs, rhs, groups):
    """[..., groups, k], [k, groups * n] -> [..., groups, n]."""
    if groups == 1:
        return lax.dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((), ())))
    rhs = rhs.reshape(rhs.shape[0], groups, rhs.shape[1] // groups)
    out = lax.dot_general(lhs, rhs, (((lhs.ndim - 1,), (0,)), ((lhs.ndim - 2,), (1,))))
    return jnp.moveaxis(out, 0, -2)
