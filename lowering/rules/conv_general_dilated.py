"""Convolutions of any rank, layout, stride, padding, dilation and grouping."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from lowering import avals
from lowering.arrays import complex_math, small_integers
from lowering.arrays.convolutions import convolve
from lowering.arrays.windows import Window, windows
from lowering.avals import real_dtype
from lowering.context import Context
from lowering.jax_compat import max_dim
from lowering.ops import cast, constant, even, integers, move
from lowering.ops.dtypes import COMPLEX, LOW_PRECISION
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import CONSUMER
from lowering.targets.onnx import quirks as onnx
from lowering.targets.tfjs import quirks as tfjs
from lowering.targets.tflite import quirks as tflite
from lowering.tensors import movement
from lowering.tensors.contractions import compute_dtypes

# The dtypes of TensorFlow's kernels; those of low precision are computed in float32, as TensorFlow
# would accumulate in low precision. The float64 kernel is far slower than a MatMul once compiled.
_KERNEL_DTYPES = (*LOW_PRECISION, np.float32)


@rule("conv_general_dilated", traits=Trait.CONTRACTION)
def conv_general_dilated(ctx, lhs, rhs, *, precision, out_sharding=None, **params):
    """One of TensorFlow's convolutions where it fits, else simpler primitives.

    Integers wrap around, booleans are or-ed, low precision is accumulated in float32. `precision`
    is a hint that changes nothing on the CPU.
    """
    axes = _axes(ctx.in_avals[1].shape, **params)
    simpler = _simpler_for_consumer(ctx, axes)
    if simpler is not None:
        return ctx.lower(simpler, lhs, rhs, avals=ctx.in_avals, **ctx.eqn.params)
    kernel = _kernel(ctx, axes)
    if kernel is None:
        return ctx.lower(_decomposed, lhs, rhs, avals=ctx.in_avals, **params)
    if kernel in (_conv2d, _depthwise_conv2d, _conv3d):
        sizes = _sizes(ctx.in_avals[0].shape, params["dimension_numbers"].lhs_spec)
        if _room(sizes, axes) != [(0, 0)] * len(sizes):
            return _with_room(ctx, lhs, rhs)
    operands = cast(lhs, tf.float32), cast(rhs, tf.float32)
    return cast(kernel(ctx, *operands, axes, params["dimension_numbers"]), lhs.dtype)


@legalization("conv_general_dilated", dtypes=COMPLEX)
def conv_general_dilated_of_parts(lhs, rhs, *, preferred_element_type=None, **params):
    dtype = real_dtype(lhs.dtype)
    product = functools.partial(
        lax.conv_general_dilated_p.bind, preferred_element_type=dtype, **params
    )
    return complex_math.bilinear(product, lhs, rhs, preferred_element_type)


@decomposition("conv_general_dilated", target=CONSUMER, dtypes=(np.int8, np.uint8))
def conv_general_dilated_of_bytes(lhs, rhs, *, preferred_element_type=None, **params):
    """In float32, where that is exact; else in int32, wrapped around once."""
    convolution = functools.partial(lax.conv_general_dilated_p.bind, **params)
    out = np.dtype(preferred_element_type or lhs.dtype)
    product = functools.partial(convolution, preferred_element_type=np.dtype(np.float32))
    lhs_spec, rhs_spec, _ = params["dimension_numbers"]
    terms = math.prod(size for axis, size in enumerate(rhs.shape) if axis != rhs_spec[0])
    # With one group, what the features of the images contribute can be added.
    is_one = params["feature_group_count"] == params["batch_group_count"] == 1
    axes = [(lhs_spec[1], rhs_spec[1])] if is_one else []
    found = small_integers.contraction(product, lhs, rhs, axes=axes, terms=terms, out=out)
    if found is None:
        kind = np.dtype(np.int32)
        lhs, rhs = lhs.astype(kind), rhs.astype(kind)
        found = convolution(lhs, rhs, preferred_element_type=kind).astype(out)
    return found


def _simpler_for_consumer(ctx, axes):
    """A decomposition into convolutions that a consumer has; None if it has this one.

    Converters take few forms of transposed convolutions.
    """
    params = ctx.eqn.params
    if ctx.target.has_tensorflow_kernels or 0 in ctx.out_aval.shape:
        return None
    if any(window.base_dilation > 1 for window in axes):
        return _with_padded_images
    has_both = any(w.dilation > 1 for w in axes) and any(w.stride > 1 for w in axes)
    if has_both and not ctx.target.has_dilated_strides:
        return _with_dilated_weights
    if ctx.target.has_grouped_convolutions or params["feature_group_count"] == 1:
        return None
    return None if _kernel(ctx, axes) is _depthwise_conv2d else _by_groups


def _with_padded_images(lhs, rhs, *, padding, lhs_dilation, dimension_numbers, **params):
    """Images with zeros between their elements and around them."""
    config = [(0, 0, 0)] * lhs.ndim
    for axis, (low, high), dilation in zip(
        dimension_numbers.lhs_spec[2:], padding, lhs_dilation, strict=True
    ):
        config[axis] = (low, high, dilation - 1)
    return lax.conv_general_dilated_p.bind(
        lax.pad(lhs, jnp.zeros((), lhs.dtype), config),
        rhs,
        padding=((0, 0),) * len(padding),
        lhs_dilation=(1,) * len(padding),
        dimension_numbers=dimension_numbers,
        **params,
    )


def _with_dilated_weights(lhs, rhs, *, rhs_dilation, dimension_numbers, **params):
    """Weights with zeros between their elements."""
    config = [(0, 0, 0)] * rhs.ndim
    for axis, dilation in zip(dimension_numbers.rhs_spec[2:], rhs_dilation, strict=True):
        config[axis] = (0, 0, dilation - 1)
    return lax.conv_general_dilated_p.bind(
        lhs,
        lax.pad(rhs, jnp.zeros((), rhs.dtype), config),
        rhs_dilation=(1,) * len(rhs_dilation),
        dimension_numbers=dimension_numbers,
        **params,
    )


def _by_groups(lhs, rhs, *, feature_group_count, dimension_numbers, **params):
    """A convolution for each group of features."""
    images = jnp.split(lhs, feature_group_count, dimension_numbers.lhs_spec[1])
    weights = jnp.split(rhs, feature_group_count, dimension_numbers.rhs_spec[0])
    params = {**params, "feature_group_count": 1, "dimension_numbers": dimension_numbers}
    parts = [
        lax.conv_general_dilated_p.bind(x, w, **params)
        for x, w in zip(images, weights, strict=True)
    ]
    return lax.concatenate(parts, dimension_numbers.out_spec[1])


def is_normalized(ctx: Context) -> bool:
    """Whether the target joins a convolution with a normalization that follows it."""
    params = ctx.eqn.params
    is_nhwc = _features_last(params["dimension_numbers"].out_spec) == (0, 1, 2, 3)
    ops = {_conv2d: "Conv2D", _depthwise_conv2d: "DepthwiseConv2dNative"}
    kernel = _kernel(ctx, _axes(ctx.in_avals[1].shape, **params))
    return is_nhwc and ops.get(kernel) in ctx.target.normalized_convolutions


def _axes(
    rhs_shape, *, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, **_
):
    """The window along each spatial axis."""
    sizes = [rhs_shape[axis] for axis in dimension_numbers.rhs_spec[2:]]
    return windows(sizes, window_strides, padding, lhs_dilation, rhs_dilation)


def _sizes(shape, spec):
    """The batch and the sizes of the spatial axes."""
    return [shape[spec[0]], *(shape[axis] for axis in spec[2:])]


def _room(sizes, axes):
    """How much padding batch and spatial axes may lack for a result that is not empty.

    With oneDNN, a convolution in a graph gives its input where its result would be empty, and where
    a window is longer than the image by more than its stride it is an error.
    """
    batch = (0, 0) if avals.is_at_least(sizes[0], 1) else (0, max_dim(sizes[0], 1) - sizes[0])
    roomy = [window.with_room(dim) for window, dim in zip(axes, sizes[1:], strict=True)]
    return [batch, *((0, new.high - old.high) for new, old in zip(roomy, axes, strict=True))]


def _with_room(ctx, lhs, rhs):
    """A convolution of images with room for one window, of which only what is wanted is kept.

    JAX cannot slice it, as it does not know that a result with room for more is no smaller.
    """
    padded = functools.partial(_padded_for_room, **ctx.eqn.params)
    roomy = jax.eval_shape(padded, *map(avals.struct, ctx.in_avals)).shape
    out = ctx.lower(_padded_for_room, lhs, rhs, avals=ctx.in_avals, **ctx.eqn.params)
    return movement.slice_(ctx, out, roomy, [0] * len(roomy), ctx.out_aval.shape)


def _padded_for_room(lhs, rhs, *, dimension_numbers, **params):
    """The convolution of images that are padded at their ends where room may lack."""
    params["dimension_numbers"] = dimension_numbers
    spec = dimension_numbers.lhs_spec
    room = _room(_sizes(lhs.shape, spec), _axes(rhs.shape, **params))
    config = [(0, 0, 0)] * lhs.ndim
    for axis, (low, high) in zip((spec[0], *spec[2:]), room, strict=True):
        config[axis] = (low, high, 0)
    lhs = lax.pad(lhs, jnp.zeros((), lhs.dtype), config)
    return lax.conv_general_dilated_p.bind(lhs, rhs, **params)


def _kernel(ctx, axes):
    """The function that emits a TensorFlow kernel for this convolution, or None."""
    params, numbers = ctx.eqn.params, ctx.eqn.params["dimension_numbers"]
    (lhs, rhs), out = ctx.in_avals, ctx.out_aval
    amounts = [amount for window in axes for amount in (window.low, window.high)]
    if not (lhs.dtype == rhs.dtype == out.dtype and lhs.dtype in _KERNEL_DTYPES):
        return None
    if params["batch_group_count"] != 1 or len(axes) not in (1, 2, 3):
        return None
    if any(0 in aval.shape for aval in (lhs, rhs, out)):
        return None
    has_known_features = avals.is_static([rhs.shape[i] for i in numbers.rhs_spec[:2]])
    if not has_known_features and ctx.target.has(tflite.unknown_features_of_convolutions):
        # `tflite.quirks.unknown_features_of_convolutions`; in a gradient they are the batch.
        return None
    is_grouped = params["feature_group_count"] != 1
    if any(window.base_dilation > 1 for window in axes):
        lhs_sizes = [lhs.shape[axis] for axis in numbers.lhs_spec[2:]]
        known = avals.is_static((*amounts, *(window.size for window in axes)))
        fits = not is_grouped and known and _is_gradient_of_input(axes, lhs_sizes)
        return _conv2d_backprop_input if fits else None
    has_gradients = not (is_grouped or ctx.target.is_consumer)
    if has_gradients and _is_gradient_of_filter(lhs, out, axes, numbers):
        return _conv2d_backprop_filter
    if any(isinstance(amount, int) and amount < 0 for amount in amounts):
        return None
    if len(axes) == 3:
        has_dilation = any(window.dilation > 1 for window in axes)
        is_slow = ctx.target.has_xla_ops and avals.is_static([w.size for w in axes])
        return None if is_grouped or has_dilation or is_slow else _conv3d
    is_depthwise = is_grouped and rhs.shape[numbers.rhs_spec[1]] == 1
    is_plain = all((w.stride, w.dilation) == (axes[0].stride, 1) for w in axes)
    return _depthwise_conv2d if is_depthwise and is_plain else _conv2d


def _features_last(spec):
    return (spec[0], *spec[2:], spec[1])


def _with_features_last(kernel):
    """A kernel that takes and returns images with features last, for images of any layout.

    `kernel` takes images [batch, ..., features], weights [..., features, features of the result],
    the windows, and the shapes of the images and of the result in that layout.
    """

    def convolve_any_layout(ctx, lhs, rhs, axes, numbers):
        lhs_order, out_order = _features_last(numbers.lhs_spec), _features_last(numbers.out_spec)
        rhs_order = (*numbers.rhs_spec[2:], numbers.rhs_spec[1], numbers.rhs_spec[0])
        x = movement.transpose(ctx, lhs, lhs_order)
        weights = movement.transpose(ctx, rhs, rhs_order)
        shape = [ctx.in_avals[0].shape[axis] for axis in lhs_order]
        out_shape = [ctx.out_aval.shape[axis] for axis in out_order]
        y = kernel(ctx, x, weights, axes, shape, out_shape)
        return movement.transpose(ctx, y, np.argsort(out_order).tolist())

    return convolve_any_layout


def _planar(axes):
    """Two windows, where a single axis got another before it."""
    return axes if len(axes) == 2 else [Window(1), *axes]


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
def _conv2d(ctx, x, weights, axes, shape, out_shape):
    """The shapes tell TensorFlow how many groups there are."""
    if not avals.is_static([amount for window in axes for amount in (window.low, window.high)]):
        x, axes, shape = _without_explicit_padding(ctx, x, axes, shape)
    x, shape = _without_rest(ctx, x, axes, shape)
    if all(window.size == 1 for window in axes):
        # TF.js makes it a product of matrices.
        x, weights = even.contracted(x, weights, -1, -2)
    return _planar_op(ctx, tf.raw_ops.Conv2D, x, weights, axes, shape[1:-1])


@_with_features_last
def _depthwise_conv2d(ctx, x, weights, axes, shape, out_shape):
    """Each group has one feature."""
    x, axes, shape = _without_explicit_padding(ctx, x, axes, shape)
    x, shape = _without_rest(ctx, x, axes, shape)
    sizes, features = [window.size for window in axes], shape[-1]
    weights = movement.reshape(ctx, weights, (*sizes, features, out_shape[-1] // features))
    return _planar_op(ctx, tf.raw_ops.DepthwiseConv2dNative, x, weights, axes, shape[1:-1])


@_with_features_last
def _conv3d(ctx, x, weights, axes, shape, out_shape):
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


def _restored(ctx, x, order, new_axis):
    """The inverse of `_arranged`."""
    x = move("Squeeze", x, axis=[new_axis]) if len(order) == 3 else x
    return movement.transpose(ctx, x, np.argsort(order).tolist())


def _is_gradient_of_input(axes, sizes):
    """Whether this is a convolution's gradient by its input, with its strides in `lhs_dilation`."""
    if len(axes) > 2 or any((window.stride, window.dilation) != (1, 1) for window in axes):
        return False
    # Some windows must hold more than padding: TensorFlow's kernel takes no empty result.
    counts = [_without_far_padding(w).count(dim) for w, dim in zip(axes, sizes, strict=True)]
    return all(not isinstance(count, int) or count > 0 for count in counts)


def _without_far_padding(window):
    """A window with less padding, so that it is never in padding alone, where it gives zero."""
    most = window.size - 1
    return dataclasses.replace(window, low=min(window.low, most), high=min(window.high, most))


def _conv2d_backprop_input(ctx, lhs, rhs, axes, numbers):
    lhs_spec, rhs_spec, out_spec = numbers
    gradient = _arranged(ctx, lhs, _features_last(lhs_spec), 1)
    weights = _arranged(ctx, rhs, (*rhs_spec[2:], rhs_spec[0], rhs_spec[1]), 0)
    weights = move("ReverseV2", weights, integers([0, 1]))
    sizes = [ctx.in_avals[0].shape[axis] for axis in lhs_spec[2:]]
    out_shape = [ctx.out_aval.shape[axis] for axis in _features_last(out_spec)]
    if len(axes) == 1:
        sizes, out_shape = [1, *sizes], [out_shape[0], 1, *out_shape[1:]]
    # The kernel leaves out what windows in padding alone give: zeros, which are added afterwards.
    axes = _planar(axes)
    inner = [_without_far_padding(window) for window in axes]
    counts = [window.count(dim) for window, dim in zip(inner, sizes, strict=True)]
    shape = [out_shape[0], *counts, out_shape[-1]]
    forward = [
        Window(w.size, w.base_dilation, w.size - 1 - w.low, w.size - 1 - w.high) for w in inner
    ]
    y = tf.raw_ops.Conv2DBackpropInput(
        input_sizes=ctx.shape(shape),
        filter=weights,
        out_backprop=gradient,
        **_attributes(ctx, forward, counts),
    )
    outer = [(w.low - i.low, w.high - i.high) for w, i in zip(axes, inner, strict=True)]
    y = movement.pad(ctx, y, shape, constant(0, y.dtype), [(0, 0), *outer, (0, 0)], out_shape)
    return _restored(ctx, y, _features_last(out_spec), 1)


def _is_gradient_of_filter(lhs, out, axes, numbers):
    """Whether this is a convolution's gradient by its filter: windows larger than the result."""
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


def _forward(axes, filters):
    """The windows of the convolution whose gradient by its filter this is."""
    # Negative padding removes elements that the strides of that convolution skip.
    pairs = zip(filters, axes, strict=True)
    return [Window(size, w.dilation, w.low, max(w.high, 0)) for size, w in pairs]


def _conv2d_backprop_filter(ctx, lhs, rhs, axes, numbers):
    """The contracted features here are the batch of the convolution whose gradient this is."""
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
    return _restored(ctx, y, order, 0)


def _decomposed(lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
    """The same convolution in simpler primitives; written in JAX."""
    axes = _axes(rhs.shape, dimension_numbers=dimension_numbers, **params)
    feature_groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    result_dtype = np.dtype(preferred_element_type or lhs.dtype)
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    dtype, *_ = compute_dtypes(lhs.dtype, rhs.dtype, result_dtype)
    lhs = lax.transpose(lhs, _features_last(lhs_spec))
    rhs = lax.transpose(rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))
    config = [(window.low, window.high, window.base_dilation - 1) for window in axes]
    lhs = lax.pad(lhs, jnp.zeros((), lhs.dtype), [(0, 0, 0), *config, (0, 0, 0)])
    axes = [dataclasses.replace(window, low=0, high=0, base_dilation=1) for window in axes]
    if batch_groups > 1:
        # Groups of the batch become groups of features.
        batch, *spatial, features = lhs.shape
        lhs = lhs.reshape(batch_groups, batch // batch_groups, *spatial, features)
        lhs = jnp.moveaxis(lhs, 0, -2)
        lhs = lhs.reshape(*lhs.shape[:-2], batch_groups * features)
    groups = feature_groups * batch_groups
    if dtype in COMPLEX:
        out = _convolve_complex(lhs, rhs, axes, groups, dtype)
    else:
        wide = np.float32 if dtype in LOW_PRECISION else dtype
        lhs, rhs = (x.astype(dtype).astype(wide) for x in (lhs, rhs))
        out = convolve(lhs, rhs, axes, groups).astype(dtype)
    out = lax.transpose(out, np.argsort(_features_last(out_spec)))
    return lax.convert_element_type(out, result_dtype)


def _convolve_complex(lhs, rhs, axes, groups, dtype):
    """Gauss's three real products, with sums in `dtype`, as JAX does it on the CPU."""
    x, y, a, b = lax.real(lhs), lax.imag(lhs), lax.real(rhs), lax.imag(rhs)
    real = np.finfo(dtype).dtype
    both, first, second = (
        convolve(p.astype(real), q.astype(real), axes, groups)
        for p, q in ((x + y, a), (x, b - a), (y, a + b))
    )
    return lax.complex(both - second, both + first)
