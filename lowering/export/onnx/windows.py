"""Convolutions and pooling. TensorFlow's images have their features last, those of ONNX first."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from lowering.errors import UnsupportedError
from lowering.export.onnx import layout
from lowering.export.onnx.builder import Builder
from lowering.export.onnx.table import op
from lowering.export.onnx.values import made_by, static

Pads = tuple[list[int], list[int]]


@op("Conv2D", "Conv3D")
def conv(b: Builder, node: Any, x: ir.Value, filters: ir.Value) -> ir.Value:
    """A convolution; the number of groups follows from the features."""
    rank = node.inputs[0].shape.rank
    groups = _groups(_features(node, node.inputs[0].shape), node.inputs[1].shape[-2])
    weights = b.transpose(filters, [rank - 1, rank - 2, *range(rank - 2)])
    return _conv(b, node, x, weights, groups)


@op("DepthwiseConv2dNative")
def depthwise(b: Builder, node: Any, x: ir.Value, filters: ir.Value) -> ir.Value:
    """A convolution of each feature by itself."""
    height, width, features, multiplier = node.inputs[1].shape
    weights = b.transpose(filters, [2, 3, 0, 1])
    weights = b.reshape(weights, (features * multiplier, 1, height, width))
    return _conv(b, node, x, weights, features)


def _conv(b: Builder, node: Any, x: ir.Value, weights: ir.Value, groups: int) -> ir.Value:
    sizes = list(node.inputs[1].shape)[: node.inputs[0].shape.rank - 2]
    strides, dilations = _spatial(node, "strides"), _spatial(node, "dilations")
    attributes = _padding(node, sizes, strides, dilations)
    if groups != 1:
        attributes["group"] = groups
    if set(dilations) != {1}:
        attributes["dilations"] = dilations
    if set(strides) != {1}:
        attributes["strides"] = strides
    return _from_first(b, node, b.op("Conv", _to_first(b, node, x), weights, **attributes))


@op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_transpose(
    b: Builder, node: Any, sizes: ir.Value, filters: ir.Value, x: ir.Value
) -> ir.Value:
    """A transposed convolution, whose padding follows from the sizes of both images."""
    rank = node.inputs[2].shape.rank
    window = list(node.inputs[1].shape)[: rank - 2]
    strides, dilations = _spatial(node, "strides"), _spatial(node, "dilations")
    large = _sizes_of(node, node.outputs[0].shape)
    small = _sizes_of(node, node.inputs[2].shape)
    if None in large or None in small:
        raise UnsupportedError(
            f"{node.name!r} is {node.type} of unknown sizes, which lowering does not write to ONNX"
        )
    begins, ends = _pads(node, large, window, strides, dilations)
    # Elements that the sizes lack, beyond the padding, are at the end.
    missing = [
        n - (s * (m - 1) + (k - 1) * d + 1 - before - after)
        for n, m, s, k, d, before, after in zip(
            large, small, strides, window, dilations, begins, ends, strict=True
        )
    ]
    groups = _groups(_features(node, node.outputs[0].shape), node.inputs[1].shape[-2])
    weights = b.transpose(filters, [rank - 1, rank - 2, *range(rank - 2)])
    attributes: dict[str, Any] = {"pads": [*begins, *ends], "strides": strides}
    if any(missing):
        attributes["output_padding"] = missing
    if groups != 1:
        attributes["group"] = groups
    if set(dilations) != {1}:
        attributes["dilations"] = dilations
    return _from_first(b, node, b.op("ConvTranspose", _to_first(b, node, x), weights, **attributes))


@op("MaxPool", "MaxPool3D", "AvgPool", "AvgPool3D")
def pool(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """The maximum, or the average of what is no padding, of each window."""
    window, strides = _spatial(node, "ksize"), _spatial(node, "strides")
    attributes = _padding(node, window, strides, [1] * len(window))
    kind = "MaxPool" if node.type.startswith("Max") else "AveragePool"
    attributes |= {"kernel_shape": window, "strides": strides}
    result = b.op(kind, _to_first(b, node, x), **attributes)
    if _is_gray(node, x):
        return b.reshape(result, node.outputs[0].shape.as_list())
    return _from_first(b, node, result)


@op("DepthToSpace", "SpaceToDepth")
def move_blocks(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """Blocks of pixels that become features, or are made of these."""
    attributes = {"blocksize": node.get_attr("block_size")}
    return _from_first(b, node, b.op(node.type, _to_first(b, node, x), **attributes))


@op("ResizeBilinear", "ResizeNearestNeighbor")
def resize(b: Builder, node: Any, x: ir.Value, size: ir.Value) -> ir.Value:
    """An image of another size, whose pixels have half-integer centers."""
    if node.get_attr("align_corners") or not node.get_attr("half_pixel_centers"):
        raise UnsupportedError(
            f"{node.name!r} is {node.type} of pixels without half-integer centers, which lowering "
            "does not write to ONNX"
        )
    sizes = zip(node.inputs[0].shape[1:3], node.outputs[0].shape[1:3], strict=True)
    scales = [1.0, 1.0, *(_scale(before, after) for before, after in sizes)]
    attributes = {"mode": "linear"}
    if node.type == "ResizeNearestNeighbor":
        attributes = {"mode": "nearest", "nearest_mode": "round_prefer_ceil"}
    images, known = _to_first(b, node, x), b.constant(np.asarray(scales, np.float32))
    return _from_first(b, node, b.op("Resize", images, None, known, **attributes))


def _scale(before: int, after: int) -> np.float32:
    """The least quotient of sizes, in float32, that makes the new size of the other."""
    scale = np.float32(after / before)
    is_enough = int(before * float(scale)) >= after
    return scale if is_enough else np.nextafter(scale, np.float32(np.inf))


def _padding(
    node: Any, window: Sequence[int], strides: Sequence[int], dilations: Sequence[int]
) -> dict[str, Any]:
    """The attributes for the padding of an op."""
    sizes = _sizes_of(node, node.inputs[0].shape)
    if node.get_attr("padding") == b"SAME" and None in sizes:
        return {"auto_pad": "SAME_UPPER"}
    begins, ends = _pads(node, sizes, window, strides, dilations)
    return {"pads": [*begins, *ends]} if any(begins) or any(ends) else {}


def _pads(
    node: Any,
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Sequence[int],
    dilations: Sequence[int],
) -> Pads:
    """The padding before and behind each axis of an image of some sizes."""
    padding = node.get_attr("padding")
    if padding == b"EXPLICIT":
        pads = node.get_attr("explicit_paddings")
        axes = range(2, len(pads) // 2) if _is_first(node) else range(1, len(pads) // 2 - 1)
        return [pads[2 * axis] for axis in axes], [pads[2 * axis + 1] for axis in axes]
    if padding == b"VALID":
        return [0] * len(window), [0] * len(window)
    totals = [
        max((-(-n // s) - 1) * s + (k - 1) * d + 1 - n, 0)
        for n, k, s, d in zip(sizes, window, strides, dilations, strict=True)
    ]
    return [total // 2 for total in totals], [total - total // 2 for total in totals]


def _is_first(node: Any) -> bool:
    """Whether features come first; ops without the attribute have them last."""
    return "data_format" in node.node_def.attr and node.get_attr("data_format") in (
        b"NCHW",
        b"NCDHW",
    )


def _spatial(node: Any, attribute: str) -> list[int]:
    """The numbers of an attribute for the axes of an image."""
    numbers = node.get_attr(attribute)
    return list(numbers[2:] if _is_first(node) else numbers[1:-1])


def _sizes_of(node: Any, shape: Any) -> list[Any]:
    """The sizes of an image."""
    sizes = shape.as_list()
    return sizes[2:] if _is_first(node) else sizes[1:-1]


def _features(node: Any, shape: Any) -> int | None:
    return shape[1 if _is_first(node) else -1]


def _groups(features: int | None, of_group: int | None) -> int:
    """The number of groups; there is one where sizes are not known, such as those of batches."""
    return 1 if features is None or of_group is None else features // of_group


def _to_first(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """An image with its features first."""
    rank = node.outputs[0].shape.rank
    if _is_gray(node, x):
        batch, *spatial, features = static(x) or ()
        return b.reshape(x, (batch, features, *spatial))
    return x if _is_first(node) else b.transpose(x, [0, rank - 1, *range(1, rank - 1)])


def _is_gray(node: Any, x: ir.Value) -> bool:
    """Whether images have one feature, which needs no transpose, and none is there to cancel out.

    Pooling has such images where features come first in the program.
    """
    sizes = static(x)
    if _is_first(node) or sizes is None or not node.outputs[0].shape.is_fully_defined():
        return False
    return sizes[-1] == 1 and made_by(x, "Transpose") is None


def _from_first(b: Builder, node: Any, x: ir.Value) -> ir.Value:
    """An image in the layout of an op, of one with its features first."""
    rank = node.outputs[0].shape.rank
    if _is_first(node):
        return x
    x.shape = ir.Shape(
        [node.outputs[0].shape.as_list()[i] for i in (0, rank - 1, *range(1, rank - 1))]
    )
    return layout.transposed(b, x, [0, *range(2, rank), 1])


@op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(b: Builder, node: Any, x: ir.Value, *parameters: ir.Value) -> list[Any]:
    """A normalization with known means and variances; the other results are for training."""
    if node.get_attr("is_training"):
        raise UnsupportedError(
            f"{node.name!r} is {node.type} in training, which lowering does not write to ONNX"
        )
    epsilon = node.get_attr("epsilon")
    made = b.op("BatchNormalization", _to_first(b, node, x), *parameters, epsilon=epsilon)
    return [_from_first(b, node, made), *[None] * (len(node.outputs) - 1)]
