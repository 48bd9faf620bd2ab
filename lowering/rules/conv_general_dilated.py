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
from lowering.arrays.windows import windows
from lowering.avals import real_dtype
from lowering.context import Context
from lowering.jax_compat import max_dim
from lowering.ops import cast
from lowering.ops.constants import is_weight
from lowering.ops.dtypes import COMPLEX, LOW_PRECISION
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import CONSUMER
from lowering.targets.tflite import quirks as tflite
from lowering.tensors import convolutions, movement
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
    simpler = _simpler_for_consumer(ctx, axes, is_weight(rhs))
    if simpler is not None:
        return ctx.lower(simpler, lhs, rhs, avals=ctx.in_avals, **ctx.eqn.params)
    kernel = _kernel(ctx, axes)
    if kernel is None:
        return ctx.lower(_decomposed, lhs, rhs, avals=ctx.in_avals, **params)
    if kernel in (convolutions.conv2d, convolutions.depthwise_conv2d, convolutions.conv3d):
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


# ONNX has these dtypes, but onnxruntime convolves float32 alone with most of them.
@decomposition("conv_general_dilated", target=CONSUMER, dtypes=(np.int8, np.uint8))
def conv_general_dilated_of_bytes(lhs, rhs, *, preferred_element_type=None, **params):
    """Computed in float32 where that is exact, else in int32, and wrapped around once."""
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


def _simpler_for_consumer(ctx, axes, has_weights):
    """A decomposition into convolutions that a runtime has; None if it has this one.

    Converters take few forms of transposed convolutions, whose weights are turned around: for
    weights that are no constants that takes more than it gains.
    """
    params = ctx.eqn.params
    if ctx.target.has_tensorflow_kernels or 0 in ctx.out_aval.shape:
        return None
    if any(window.base_dilation > 1 for window in axes):
        sizes = [ctx.out_aval.shape[axis] for axis in params["dimension_numbers"].out_spec[2:]]
        is_known = has_weights and _kernel(ctx, axes) is convolutions.conv_backprop_input
        fits = is_known and convolutions.is_converted_gradient(ctx, axes, sizes)
        return None if fits else _with_padded_images
    has_both = any(w.dilation > 1 for w in axes) and any(w.stride > 1 for w in axes)
    if has_both and not ctx.target.has_dilated_strides:
        return _with_dilated_weights
    if ctx.target.has_grouped_convolutions or params["feature_group_count"] == 1:
        return None
    return None if _kernel(ctx, axes) is convolutions.depthwise_conv2d else _by_groups


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
    is_nhwc = convolutions.features_last(params["dimension_numbers"].out_spec) == (0, 1, 2, 3)
    ops = {convolutions.conv2d: "Conv2D", convolutions.depthwise_conv2d: "DepthwiseConv2dNative"}
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
    """A convolution of images padded so that one window fits, sliced to the wanted result.

    TensorFlow slices it, as JAX cannot prove that the padded result is no smaller.
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
        is_known_op = len(axes) < 3 or "Conv3DBackpropInputV2" in ctx.target.ops_of_volumes
        fits = not is_grouped and known and is_known_op
        fits = fits and convolutions.is_gradient_of_input(axes, lhs_sizes)
        return convolutions.conv_backprop_input if fits else None
    has_gradients = not (is_grouped or ctx.target.is_consumer)
    if has_gradients and convolutions.is_gradient_of_filter(lhs, out, axes, numbers):
        return convolutions.conv2d_backprop_filter
    if any(isinstance(amount, int) and amount < 0 for amount in amounts):
        return None
    if len(axes) == 3:
        has_dilation = any(window.dilation > 1 for window in axes)
        is_slow = ctx.target.has_xla_ops and avals.is_static([w.size for w in axes])
        return None if is_grouped or has_dilation or is_slow else convolutions.conv3d
    is_depthwise = is_grouped and rhs.shape[numbers.rhs_spec[1]] == 1
    is_plain = all((w.stride, w.dilation) == (axes[0].stride, 1) for w in axes)
    return convolutions.depthwise_conv2d if is_depthwise and is_plain else convolutions.conv2d


def _decomposed(lhs, rhs, *, dimension_numbers, preferred_element_type, **params):
    """The same convolution in simpler primitives; written in JAX."""
    axes = _axes(rhs.shape, dimension_numbers=dimension_numbers, **params)
    feature_groups, batch_groups = params["feature_group_count"], params["batch_group_count"]
    result_dtype = np.dtype(preferred_element_type or lhs.dtype)
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    dtype, *_ = compute_dtypes(lhs.dtype, rhs.dtype, result_dtype)
    lhs = lax.transpose(lhs, convolutions.features_last(lhs_spec))
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
    out = lax.transpose(out, np.argsort(convolutions.features_last(out_spec)))
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
