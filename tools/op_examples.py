"""Ops with operands, for which `tools.probe_consumers` asks whether a runtime runs them."""

import collections
import dataclasses
import functools
import inspect
import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf
import tqdm
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_callbacks, op_def_registry

import lowering
from harnesses.arguments import name as dtype_name
from harnesses.harness import Harness
from harnesses.natural import natural
from harnesses.variants import SETTINGS, on_arrays
from lowering import context, jax_compat
from lowering.ops import constants, kernels, tuning

# An op with more operands or numbers is not kept: another harness has the same op on fewer.
_ELEMENTS = 4096
# How many examples of an op with the same dtype are tried; one that is accepted is enough.
_EXAMPLES = 3

# Ops that every consumer inlines or drops.
_SKIPPED = {"PartitionedCall", "StatefulPartitionedCall", "NoOp", "Identity", "IdentityN", "Const"}

# Dtypes that no consumer has, and those of 64 bits that programs have only where JAX has them.
_LEFT_OUT = (tf.resource, tf.variant, tf.string, tf.float64, tf.complex128, tf.uint64)

# The dtypes of 64 bits, which harnesses for consumers do not have.
_OF_64_BITS = {
    "int32": "int64",
    "uint32": "uint64",
    "float32": "float64",
    "complex64": "complex128",
}

# The attributes for the dtypes of results.
_RESULT_ATTRIBUTES = {"Bitcast": "type", "Cast": "DstT"}

# Type attributes of indices, which are not the dtype of an op.
_OF_PARAMETERS = re.compile(
    "T(idx|shape|len|perm|paddings|axis|multiples|dim|k|crops|block_shape)|Index|index_type"
)
_OF_INDICES = re.compile(f"Tindices|{_OF_PARAMETERS.pattern}")


@dataclasses.dataclass(frozen=True)
class Example:
    """An op with operands.

    Attributes:
      op: the name of the op.
      attrs: its attributes.
      operands: what it is applied to.
      is_known: which of the operands are known when the graph is made.
      result: the dtype of its first result.
      atol: which absolute error is accepted beside the relative one.
    """

    op: str
    attrs: Mapping[str, Any]
    operands: Sequence[np.ndarray]
    is_known: Sequence[bool]
    result: tf.DType
    atol: float = 1e-5

    @functools.cached_property
    def grouped(self) -> list[Any]:
        """The positions of the operands of each input; a list of them where it takes a list."""
        groups: list[Any] = []
        start = 0
        for arg in op_def_registry.get(self.op).input_arg:
            if arg.number_attr or arg.type_list_attr:
                others = len(op_def_registry.get(self.op).input_arg) - 1
                count = len(self.operands) - others
                groups.append(list(range(start, start + count)))
                start += count
            else:
                groups.append(start)
                start += 1
        return groups

    @property
    def name(self) -> str:
        """The name of the op, as the tables have it."""
        return kernels.listed(self.op, self.attrs)

    @property
    def dtype(self) -> str:
        """The dtype of the op, as the tables have it."""
        name = dtype_name(self.operands[self.typed[0]].dtype)
        return f"{name}->{self.result.name}" if self.op == "Cast" else name

    @property
    def typed(self) -> list[int]:
        """The positions of the operands whose dtype is that of the op."""
        args = list(op_def_registry.get(self.op).input_arg)
        main = next(
            (
                i
                for i, arg in enumerate(args)
                if (arg.type_attr or arg.type_list_attr)
                and not _OF_INDICES.fullmatch(arg.type_attr)
            ),
            0,
        )
        attr = args[main].type_attr
        groups = [
            group
            for i, group in enumerate(self.grouped)
            if i == main or (attr and args[i].type_attr == attr)
        ]
        return [i for group in groups for i in (group if isinstance(group, list) else [group])]

    @property
    def inputs(self) -> list[np.ndarray]:
        """The operands that are not known when the graph is made."""
        return [x for x, known in zip(self.operands, self.is_known, strict=True) if not known]

    @property
    def has_large_integers(self) -> bool:
        """Whether float32 does not hold all integers of its operands and results."""
        arrays = [x for x in (*self.operands, *self.results()) if x.dtype.kind in "iu"]
        return any(np.max(np.abs(x.astype(np.float64)), initial=0) > 1 << 24 for x in arrays)

    def apply(self, *given: Any) -> list[tf.Tensor]:
        """The results of the op on tensors in place of its inputs."""
        rest = iter(given)
        operands = [
            tf.constant(x) if known else next(rest)
            for x, known in zip(self.operands, self.is_known, strict=True)
        ]
        values = [
            [operands[i] for i in group] if isinstance(group, list) else operands[group]
            for group in self.grouped
        ]
        function = getattr(tf.raw_ops, self.op)
        names = [name for name in inspect.signature(function).parameters if name != "name"]
        attrs = {name: self.attrs[name] for name in names[len(values) :] if name in self.attrs}
        results = function(**dict(zip(names, values, strict=False)), **attrs)
        return tf.nest.flatten(results)

    def results(self) -> list[np.ndarray]:
        """What TensorFlow computes."""
        return [x.numpy() for x in self.apply(*map(tf.constant, self.inputs))]


def examples(harnesses: Sequence[Harness]) -> list[list[Example]]:
    """Examples of each op and dtype that harnesses need on the portable target."""
    found: dict[Any, list[Example]] = collections.defaultdict(list)
    known: dict[int, Any] = {}
    get = constants._eager_small.get

    def remembered(key, make):
        result = get(key, make)
        known[id(result)] = result
        return result

    def record(op, inputs, attrs, outputs, op_name=None, graph=None):
        if graph is not None or op in _SKIPPED or not hasattr(tf.raw_ops, op) or not inputs:
            return
        if any(x.dtype in _LEFT_OUT for x in inputs):
            return
        if sum(x.shape.num_elements() for x in inputs) > _ELEMENTS:
            return
        is_known = [
            id(x) in known or is_parameter
            for x, is_parameter in zip(inputs, _are_parameters(op, len(inputs)), strict=True)
        ]
        if all(is_known) or any(0 in x.shape for x in inputs):
            return
        values = dict(zip(attrs[::2], attrs[1::2], strict=True))
        if values.get("bad_indices_policy"):  # Graphs for consumers do not have it.
            return
        operands = [x.numpy() for x in inputs]
        example = Example(op, values, operands, is_known, outputs[0].dtype)
        key = example.name, outputs[0].dtype, example.dtype
        if len(found[key]) < _EXAMPLES:
            found[key].append(example)

    def by_mode(self, op_by_op, compiled, *operands):
        return compiled(*operands)

    with (
        mock.patch.object(context.Context, "by_mode", by_mode),
        # Ops as the targets of consumers have them.
        mock.patch.object(tuning, "_permits", lambda target: False),
        mock.patch.object(constants._eager_small, "get", remembered),
    ):
        op_callbacks.add_op_callback(record)
        try:
            for harness in tqdm.tqdm(harnesses, desc="harnesses"):
                _run(natural(harness))
        finally:
            op_callbacks.remove_op_callback(record)
    return [*found.values(), *_of_passes()]


def of_64_bits(groups: Sequence[Sequence[Example]]) -> list[list[Example]]:
    """The same ops on operands of twice as many bits, where they have 32; casts to these, too."""
    found = []
    for group in groups:
        example = group[0]
        to = _OF_64_BITS.get(example.result.name)
        if example.op == "Cast" and to is not None:
            found.append([_with_dtypes(x, None, to) for x in group])
        wide = _OF_64_BITS.get(dtype_name(example.operands[example.typed[0]].dtype))
        if wide is None:
            continue
        found.append([_with_dtypes(x, wide, to) for x in group])
        if example.op == "Cast" and to is not None:
            found.append([_with_dtypes(x, wide, None) for x in group])
    return found


def _with_dtypes(example: Example, dtype: str | None, result: str | None) -> Example:
    """An op on operands of another dtype, if it is given, with results of another, if it is."""
    operands = list(example.operands)
    for i in example.typed if dtype is not None else ():
        operands[i] = np.asarray(operands[i]).astype(dtype)
        if dtype in ("float64", "complex128"):
            operands[i] *= 1 + 2**-40  # Not a float32.
    to = example.result if result is None else tf.as_dtype(result)
    of_result = _RESULT_ATTRIBUTES.get(example.op)
    attrs = {**example.attrs, **({of_result: to} if of_result else {})}
    return dataclasses.replace(example, operands=operands, result=to, attrs=attrs)


def _of_passes() -> list[list[Example]]:
    """Examples of ops that no harness needs: passes find them, or rules use them if they can."""
    return [*_of_floats(), *_of_integers(), *_of_movement()]


def example(
    op: str,
    *operands: Any,
    known: Sequence[int] = (),
    result: Any = None,
    atol: float = 1e-5,
    **attrs: Any,
) -> Example:
    """An example whose result has the dtype of its first operand unless another is given.

    `known` are the positions of the operands that are known when the graph is made.
    """
    arrays = list(map(np.asarray, operands))
    is_known = [i in known for i in range(len(arrays))]
    return Example(op, attrs, arrays, is_known, tf.as_dtype(result or arrays[0].dtype), atol)


def _of_two(x: Any, y: Any, ops: str) -> list[list[Example]]:
    """Ops on two operands, of which the second is known or is not."""
    return [[example(op, x, y, known=known) for known in ((), (1,))] for op in ops.split()]


def _of_floats() -> list[list[Example]]:
    numbers = np.array([[-2.5, -1.0, 0.0], [0.25, 1.0, 7.5]], np.float32)
    ratios = np.array([-2.5, 7, 1e10, 1e-3, 5e9], np.float32)
    left, right = np.array([[np.inf, -np.inf, 1], [np.inf, np.inf, np.inf]], np.float32)
    small, huge = [1e-30, -1e-7, 1e-4, 0.5], [3e38]
    with_digits = {
        **{"Log1p": small + huge, "Sign": small + huge, "Sin": small, "Erf": small},
        **{"Expm1": [-1e-5, 1e-4, 0.5], "Softplus": [-30, -5, 3, 100]},
    }
    unary = "Relu Relu6 LeakyRelu Elu Softplus LogSoftmax Square Inv Erf Erfc Rint"
    return [
        *([example(op, numbers)] for op in unary.split()),
        *([example(op, np.array(x, np.float32), atol=0)] for op, x in with_digits.items()),
        *_of_two(numbers, numbers[::-1] + 0.5, "FloorMod SquaredDifference"),
        *_of_two(ratios, ratios[::-1] + 3, "FloorDiv TruncateMod"),
        *_of_two(np.abs(ratios), ratios[::-1] + 3, "FloorMod"),
        *_of_two(left, right, "Atan2"),
        *_of_two(np.float32(2), np.float32(3), "Atan2"),
        [example("Bitcast", numbers, result=tf.int32, type=tf.int32)],
        [example("Cast", ratios, result=tf.bool, DstT=tf.bool)],
    ]


_INTEGERS = np.array(
    [-(2**31), -(2**31) + 1, -70000, -7, -1, 0, 1, 6, 70001, 2**31 - 1, 756803085], np.int32
)


def _of_integers() -> list[list[Example]]:
    x = _INTEGERS
    neighbours = np.where(x > 0, x - 1, x + 1)
    divisors = np.array([3, -5, 2, 7, 1, -2, 4, 65536, 3, 7, -3], np.int32)
    amounts = np.array([1, 2, 31, 4, 5, 30, 0, 17, 3, 1, 2], np.int32)
    large, axis = np.stack([x, x[::-1] + 7, x - 3, amounts * 3]), np.array([0], np.int32)
    totals = (("Sum", np.int32), ("Sum", np.int64), ("Prod", np.int32))
    return [
        *([example(op, x)] for op in ("Abs", "Invert", "Neg", "Square")),
        *_of_two(x, divisors, "FloorDiv FloorMod TruncateDiv TruncateMod Mul"),
        *_of_two(x, neighbours, "BitwiseAnd BitwiseOr BitwiseXor"),
        *_of_two(x, amounts, "LeftShift RightShift"),
        *(
            [example(op, x, neighbours, known=known, result=tf.bool) for known in ((), (1,))]
            for op in ("Less", "LessEqual", "Greater", "GreaterEqual")
        ),
        *_of_two(x, neighbours, "Maximum"),
        *(
            [example(op, large.astype(dtype), axis, known=(1,), keep_dims=False)]
            for op, dtype in totals
        ),
        [example("TopKV2", x, np.int32(4), known=(1,), sorted=True)],
        [example("ClipByValue", x, np.int32(-5), np.int32(70000))],
        [example("Cast", x, result=tf.bool, DstT=tf.bool)],
    ]


def _of_movement() -> list[list[Example]]:
    flags, axis = np.array([True, False]), np.array([0], np.int32)
    with_infinity = np.array([np.inf, -np.inf, 1], np.float32)
    place, update = np.array([[1]], np.int32), np.array([2.0], np.float32)
    rows = np.arange(20.0).reshape(4, 5)
    columns = np.array([[2, 0], [1, 1], [4, 3], [0, 2]], np.int32)
    bounds = [np.array([number], np.int32) for number in (1, 8, 2)]
    masks = "begin_mask end_mask ellipsis_mask new_axis_mask shrink_axis_mask"
    dtypes = (np.float32, np.int32, np.bool_)
    edge = np.array([[1, 2]], np.int32)
    images = np.arange(64).reshape(1, 4, 4, 4)
    window = [1, 2, 2, 1]
    pooling: dict[str, Any] = {"ksize": window, "strides": window, "padding": "VALID"}
    pooling |= {"explicit_paddings": [], "data_format": "NHWC"}
    resizing = {"align_corners": False, "half_pixel_centers": True}
    return [
        [example("MaxPool", images.astype(np.float32), **pooling)],
        *(
            [example(op, images.astype(d), block_size=2, data_format="NHWC")]
            for op in ("DepthToSpace", "SpaceToDepth")
            for d in dtypes[:2]
        ),
        *(
            [
                example(
                    op,
                    images.astype(np.float32),
                    np.array([8, 6], np.int32),
                    known=(1,),
                    **resizing,
                )
            ]
            for op in ("ResizeBilinear", "ResizeNearestNeighbor")
        ),
        *(
            [example("MirrorPad", np.arange(4).astype(d), edge, known=(1,), mode="REFLECT")]
            for d in dtypes
        ),
        [example("SelectV2", flags, flags, flags[::-1])],
        [example("ReverseV2", flags, axis, known=(1,))],
        [example("PadV2", _INTEGERS, edge, _INTEGERS[-1], known=(1, 2))],
        *(
            [example(op, with_infinity, place, update)]
            for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub")
        ),
        *(
            [example(f"TensorScatter{op}", *_repeated(d))]
            for op in ("Update", "Min", "Max")
            for d in dtypes
        ),
        *(
            [example(f"UnsortedSegment{op}", *_segments(d), known=(2,))]
            for op in ("Prod", "Min", "Max")
            for d in dtypes
        ),
        *(
            [example("GatherV2", rows.astype(d), columns, np.int32(1), known=(2,), batch_dims=1)]
            for d in dtypes
        ),
        *(
            [
                example(
                    "StridedSlice",
                    _INTEGERS.astype(d),
                    *bounds,
                    known=(1, 2, 3),
                    **dict.fromkeys(masks.split(), 0),
                )
            ]
            for d in dtypes
        ),
    ]


def _repeated(dtype: Any) -> list[np.ndarray]:
    """An array, indices of which two are equal, and updates."""
    updates = np.array([1, 0, 1, 0], dtype)
    return [np.arange(5).astype(dtype), np.array([[1], [3], [4], [1]], np.int32), updates]


def _segments(dtype: Any) -> list[Any]:
    """Rows, the numbers of their segments (one of none), and how many segments there are."""
    rows = np.array([[5, 3], [2, 7], [1, 1], [6, 0], [4, 9]]).astype(dtype)
    return [rows, np.array([0, 1, 2, -1, 0], np.int32), np.int32(3)]


def _are_parameters(op: str, count: int) -> list[bool]:
    """Which of some operands are sizes or axes, which are known when a program is converted."""
    result: list[bool] = []
    args = list(op_def_registry.get(op).input_arg)
    for arg in args:
        is_list = bool(arg.number_attr or arg.type_list_attr)
        is_parameter = (
            bool(_OF_PARAMETERS.fullmatch(arg.type_attr)) or arg.type == types_pb2.DT_INT32
        )
        result += [is_parameter] * (count - len(args) + 1 if is_list else 1)
    return result


def _run(harness: Harness) -> None:
    """Runs a harness eagerly; what fails on the portable target has no ops to record."""
    try:
        fun, arrays = on_arrays(harness.fun, harness.make_args())
        with jax_compat.under(SETTINGS["32 bits"]):
            lowering.convert(fun, target="portable", with_gradient=False)(*arrays)
    except Exception as error:
        logging.getLogger(__name__).debug("%s: %s", harness.name, error)
