"""TensorFlow's kernels for convolutions, on images and weights of any layout."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays.windows import Window
from lowering.context import Context
from lowering.ops import constant, even, integers, move
from lowering.targets.onnx import quirks as onnx
from lowering.targets.tfjs import quirks as tfjs
from lowering.tensors import movement
from lowering.tensors.movement import Dim, Shape

# What runs one convolution: the context of the rule, images, weights, the window of each spatial
# axis, and the dimension numbers. The result has the layout that these say.
Convolution: TypeAlias = Callable[
    [Context, tf.Tensor, tf.Tensor, Sequence[Window], lax.ConvDimensionNumbers], tf.Tensor
]


def features_last(spec: Sequence[int]) -> tuple[int, ...]:
    """The axes of a specification (batch, features, *spatial), with the features last."""
    return (spec[0], *spec[2:], spec[1])


def _with_features_last(kernel: Callable[..., tf.Tensor]) -> Convolution:
    """A kernel that takes and returns images with features last, for images of any layout.

    `kernel` takes images [batch, ..., features], weights [..., features, features of the result],
    the windows, and the shapes of the images and of the result in that layout.
    """

    def convolve_any_layout(ctx, lhs, rhs, axes, numbers):
        lhs_order, out_order = features_last(numbers.lhs_spec), features_last(numbers.out_spec)
        rhs_order = (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0])
        x = movement.transpose(ctx, lhs, lhs_order)
        weights = movement.transpose(ctx, rhs, rhs_order)
        shape = [ctx.in_avals[0].shape[axis] for axis in lhs_order]
        out_shape = [ctx.out_aval.shape[axis] for axis in out_order]
        y = kernel(ctx, x, weights, axes, shape, out_shape)
        return movement.transpose(ctx, y, np.argsort(out_order).tolist())

    return convolve_any_layout


def _planar(axes):
    """The windows, where a single axis got another before it.

    Both have one stride: TensorFlow's depthwise convolutions take no others.
    """
    return [Window(1, stride=axes[0].stride), *axes] if len(axes) == 1 else axes


def _planar_op(ctx, op, x, weights, axes, sizes):
    """Runs an op for two spatial axes; a single axis gets another before it."""
    if len(axes) == 1:
        x, weights = move("ExpandDims", x, integers(1)), move("ExpandDims", weights, integers(0))
        sizes = [1, *sizes]
    y = op(input=x, filter=weights, **_attributes(ctx, axes, sizes))
    return move("Squeeze", y, axis=[1]) if len(axes) == 1 else y


def _attributes(ctx, axes, sizes):
    """Strides, padding and dilations as attributes of convolutions of images of these sizes."""
    axes = _planar(axes)
    padding = _padding(ctx, axes, sizes)
    amounts = [amount for window in axes for amount in (window.low, window.high)]
    return {
        "strides": [1, *(window.stride for window in axes), 1],
        "padding": padding,
        "explicit_paddings": [0, 0, *amounts, 0, 0] if padding == "EXPLICIT" else [],
        "dilations": [1, *(window.dilation for window in axes), 1],
    }


def _padding(ctx, axes, sizes):
    """What TensorFlow calls the padding of images of these sizes.

    It is explicit with `onnx.quirks.padding_of_dilated_windows`.
    """
    amounts = [(window.low, window.high) for window in axes]
    if not any(amount for pair in amounts for amount in pair):
        return "VALID"
    is_computed = any(w.dilation > 1 for w in axes) and not avals.is_static(sizes)
    if is_computed and ctx.target.has(onnx.padding_of_dilated_windows):
        return "EXPLICIT"
    extents, strides = [w.extent for w in axes], [w.stride for w in axes]
    is_same = amounts == lax.padtype_to_pads(sizes, extents, strides, "SAME")
    return "SAME" if is_same else "EXPLICIT"


@_with_features_last
def conv2d(
    ctx: Context,
    x: tf.Tensor,
    weights: tf.Tensor,
    axes: Sequence[Window],
    shape: Shape,
    out_shape: Shape,
) -> tf.Tensor:
    """A convolution with one or two spatial axes, in float32.

    The features of images and weights tell TensorFlow how many groups there are.
    """
    if not avals.is_static([amount for window in axes for amount in (window.low, window.high)]):
        x, axes, shape = _without_explicit_padding(ctx, x, axes, shape)
    x, shape = _without_rest(ctx, x, axes, shape)
    if all(window.size == 1 for window in axes):
        # TF.js makes it a product of matrices.
        x, weights = even.contracted(x, weights, -1, -2)
    return _planar_op(ctx, tf.raw_ops.Conv2D, x, weights, axes, shape[1:-1])


@_with_features_last
def depthwise_conv2d(
    ctx: Context,
    x: tf.Tensor,
    weights: tf.Tensor,
    axes: Sequence[Window],
    shape: Shape,
    out_shape: Shape,
) -> tf.Tensor:
    """A convolution with one or two spatial axes and a group for each feature, in float32."""
    x, axes, shape = _without_explicit_padding(ctx, x, axes, shape)
    x, shape = _without_rest(ctx, x, axes, shape)
    sizes, features = [window.size for window in axes], shape[-1]
    weights = movement.reshape(ctx, weights, (*sizes, features, out_shape[-1] // features))
    return _planar_op(ctx, tf.raw_ops.DepthwiseConv2dNative, x, weights, axes, shape[1:-1])


@_with_features_last
def conv3d(
    ctx: Context,
    x: tf.Tensor,
    weights: tf.Tensor,
    axes: Sequence[Window],
    shape: Shape,
    out_shape: Shape,
) -> tf.Tensor:
    """A convolution with three spatial axes and without dilations, in float32."""
    x, axes, shape = _without_explicit_padding(ctx, x, axes, shape)
    strides = [1, *(window.stride for window in axes), 1]
    padding = _padding(ctx, axes, shape[1:-1])
    return tf.raw_ops.Conv3D(input=x, filter=weights, strides=strides, padding=padding)


def _without_rest(ctx, x, axes, shape):
    """Images and shape, without the rest of `tfjs.quirks.convolutions_with_a_rest`."""
    sizes = shape[1:-1]
    if not ctx.target.has(tfjs.convolutions_with_a_rest) or not avals.is_static(sizes):
        return x, shape
    if _padding(ctx, axes, sizes) != "SAME":
        return x, shape
    used = [
        min(size, (window.count(size) - 1) * window.stride + window.extent - window.low)
        for window, size in zip(axes, sizes, strict=True)
    ]
    kept = [shape[0], *used, shape[-1]]
    return movement.slice_(ctx, x, shape, [0] * len(shape), kept), kept


def _without_explicit_padding(ctx, x, axes, shape):
    """Images, windows and shape, padded before the op where its padding would be EXPLICIT.

    See `grappler.quirks.explicit_padding_of_depthwise_convolutions`. Conv3D knows no such padding,
    and no op a symbolic one.
    """
    if _padding(ctx, axes, shape[1:-1]) != "EXPLICIT":
        return x, axes, shape
    config = ((0, 0, 0), *((window.low, window.high, 0) for window in axes), (0, 0, 0))
    padded = [shape[0], *(w.padded(d) for w, d in zip(axes, shape[1:-1])), shape[-1]]
    operands = [jax.ShapeDtypeStruct(s, x.dtype.as_numpy_dtype) for s in (tuple(shape), ())]
    zero = constant(0, x.dtype)
    x = ctx.lower(lax.pad, x, zero, avals=operands, padding_config=config)
    return x, [dataclasses.replace(window, low=0, high=0) for window in axes], padded


def _arranged(ctx, x, order, new_axis):
    """`x` with its axes in this order; a single spatial axis gets another one before it."""
    x = movement.transpose(ctx, x, order)
    return move("ExpandDims", x, integers(new_axis)) if len(order) == 3 else x


def _arranged_back(ctx, x, order, new_axis):
    """The inverse of `_arranged`."""
    x = move("Squeeze", x, axis=[new_axis]) if len(order) == 3 else x
    return movement.transpose(ctx, x, np.argsort(order).tolist())


def is_gradient_of_input(axes: Sequence[Window], sizes: Shape) -> bool:
    """Whether this is a convolution's gradient by its input, with its strides in `lhs_dilation`."""
    if any((window.stride, window.dilation) != (1, 1) for window in axes):
        return False
    # Some windows must hold more than padding: TensorFlow's kernel takes no empty result.
    counts = [_without_far_padding(w).count(dim) for w, dim in zip(axes, sizes, strict=True)]
    return all(not isinstance(count, int) or count > 0 for count in counts)


def is_converted_gradient(ctx: Context, axes: Sequence[Window], sizes: Shape) -> bool:
    """Whether converters take the gradient by an input of these sizes: without explicit padding."""
    if len(axes) == 1:
        axes, sizes = _planar(axes), [1, *sizes]
    return (
        avals.is_static((*sizes, *(window.size for window in axes)))
        and axes == [_without_far_padding(window) for window in axes]
        and _padding(ctx, _transposed(axes), sizes) != "EXPLICIT"
    )


def _transposed(axes):
    """The windows of the convolution whose gradient by its input has these."""
    return [Window(w.size, w.base_dilation, w.size - 1 - w.low, w.size - 1 - w.high) for w in axes]


def _without_far_padding(window):
    """A window with less padding, so that it is never in padding alone, where it gives zero."""
    most = window.size - 1
    return dataclasses.replace(window, low=min(window.low, most), high=min(window.high, most))


def conv_backprop_input(
    ctx: Context,
    lhs: tf.Tensor,
    rhs: tf.Tensor,
    axes: Sequence[Window],
    numbers: lax.ConvDimensionNumbers,
) -> tf.Tensor:
    """A convolution with `lhs_dilation`, as the gradient of another by its input.

    It has one to three spatial axes; see `is_gradient_of_input`.
    """
    lhs_spec, rhs_spec, out_spec = numbers
    gradient = _arranged(ctx, lhs, features_last(lhs_spec), 1)
    weights = _turned(ctx, rhs, (*rhs_spec[2:], rhs_spec[0], rhs_spec[1]))
    sizes = [ctx.in_avals[0].shape[axis] for axis in lhs_spec[2:]]
    out_shape = [ctx.out_aval.shape[axis] for axis in features_last(out_spec)]
    if len(axes) == 1:
        sizes, out_shape = [1, *sizes], [out_shape[0], 1, *out_shape[1:]]
    # The kernel leaves out what windows in padding alone give: zeros, which are added afterwards.
    axes = _planar(axes)
    inner = [_without_far_padding(window) for window in axes]
    counts = [window.count(dim) for window, dim in zip(inner, sizes, strict=True)]
    shape = [out_shape[0], *counts, out_shape[-1]]
    attributes = _attributes(ctx, _transposed(inner), counts)
    op = tf.raw_ops.Conv2DBackpropInput
    if len(axes) == 3:
        # It knows no explicit padding; see `is_converted_gradient`.
        del attributes["explicit_paddings"]
        op = tf.raw_ops.Conv3DBackpropInputV2
    sizes_of_images = ctx.shape(shape)
    y = op(input_sizes=sizes_of_images, filter=weights, out_backprop=gradient, **attributes)
    outer = [(w.low - i.low, w.high - i.high) for w, i in zip(axes, inner, strict=True)]
    y = movement.pad(ctx, y, shape, constant(0, y.dtype), [(0, 0), *outer, (0, 0)], out_shape)
    return _arranged_back(ctx, y, features_last(out_spec), 1)


def _turned(ctx, weights, order):
    """Weights with their axes in this order and their windows turned around; once, if known."""
    spatial = range(max(len(order) - 2, 2))
    known = tf.get_static_value(weights) if ctx.target.is_natural else None
    if known is None:
        return move("ReverseV2", _arranged(ctx, weights, order, 0), integers(list(spatial)))
    known = np.transpose(known, order)
    return constant(np.flip(known[None] if len(order) == 3 else known, tuple(spatial)).copy())


def is_gradient_of_filter(
    lhs: Any, out: Any, axes: Sequence[Window], numbers: lax.ConvDimensionNumbers
) -> bool:
    """Whether this is a convolution's gradient by its filter: windows larger than the result.

    `lhs` and `out` are the abstract values of the images and the result.
    """
    inputs = [lhs.shape[axis] for axis in numbers.lhs_spec[2:]]
    filters = [out.shape[axis] for axis in numbers.out_spec[2:]]
    if len(axes) > 2 or not avals.is_static((*inputs, *filters, *(w.size for w in axes))):
        return False
    forward = _forward(axes, filters)
    return (
        math.prod(window.size for window in axes) > math.prod(filters)
        and all(window.stride == 1 and window.low >= 0 for window in axes)
        and [w.count(dim) for w, dim in zip(forward, inputs)] == [w.size for w in axes]
    )


def _forward(axes: Sequence[Window], filters: Sequence[Dim]) -> list[Window]:
    """The windows of the convolution whose gradient by its filter this is."""
    # Negative padding removes elements that the strides of that convolution skip.
    pairs = zip(filters, axes, strict=True)
    return [Window(size, w.dilation, w.low, max(w.high, 0)) for size, w in pairs]


def conv2d_backprop_filter(
    ctx: Context,
    lhs: tf.Tensor,
    rhs: tf.Tensor,
    axes: Sequence[Window],
    numbers: lax.ConvDimensionNumbers,
) -> tf.Tensor:
    """A convolution as the gradient of another by its filter; see `is_gradient_of_filter`.

    The features that are contracted here are the batch of that convolution.
    """
    lhs_spec, rhs_spec, out_spec = numbers
    x = _arranged(ctx, lhs, (lhs_spec[1], *lhs_spec[2:], lhs_spec[0]), 1)
    gradient = _arranged(ctx, rhs, (rhs_spec[1], *rhs_spec[2:], rhs_spec[0]), 1)
    inputs = [ctx.in_avals[0].shape[axis] for axis in lhs_spec[2:]]
    inputs = [1, *inputs] if len(axes) == 1 else inputs
    order = (*out_spec[2:], out_spec[0], out_spec[1])
    shape = [ctx.out_aval.shape[axis] for axis in order]
    y = tf.raw_ops.Conv2DBackpropFilter(
        input=x,
        filter_sizes=ctx.shape([1, *shape] if len(axes) == 1 else shape),
        out_backprop=gradient,
        **_attributes(ctx, _forward(axes, shape[:-2]), inputs),
    )
    return _arranged_back(ctx, y, order, 0)
