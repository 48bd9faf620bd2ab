"""Finds out which TensorFlow ops the consumers of graphs run, by their converters and runtimes.

    python -m tools.probe_consumers
    python -m tools.probe_consumers --consumer onnx --check

Harnesses are run on the target `portable`, and each op that they need is kept with its operands,
for each dtype. A program of that op alone is then converted and run for each consumer; the op is
accepted if the results are those of TensorFlow. The tables are written to
`lowering/targets/tables/`. With --check nothing is written: the differences from the tables are
printed, and the exit code is 1 if there are any.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import functools
import importlib.metadata
import inspect
import json
import logging
import multiprocessing
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any
from unittest import mock

import jax
import numpy as np
import pebble
import tensorflow as tf
import tqdm
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import op_callbacks, op_def_registry

import lowering
from harnesses.arguments import name as dtype_name
from harnesses.harness import Harness, all_harnesses
from harnesses.natural import natural
from harnesses.variants import SETTINGS, on_arrays
from lowering import context, jax_compat
from lowering.export import runtimes
from lowering.export.entry import flat_entry
from lowering.export.tfjs import node
from lowering.ops import constants, kernels, tuning
from lowering.targets import tables

# The packages that decide what a consumer runs.
CONSUMERS = {
    "tflite": ("tensorflow", "tensorflow-cpu", "ai-edge-litert"),
    "onnx": ("tf2onnx", "onnxruntime"),
    "tfjs": (),
}

# An op with more operands or numbers is not kept: another harness has the same op on fewer.
_ELEMENTS = 4096
# How many examples of an op with the same dtype are tried; one that is accepted is enough.
_EXAMPLES = 3
_SECONDS = 60

# Ops that every consumer inlines or drops.
_SKIPPED = {"PartitionedCall", "StatefulPartitionedCall", "NoOp", "Identity", "IdentityN", "Const"}

# Dtypes that no consumer has, and those of 64 bits that programs have only where JAX has them.
_LEFT_OUT = (tf.resource, tf.variant, tf.string, tf.float64, tf.complex128, tf.uint64)

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
        first = self.grouped[main]
        first = first[0] if isinstance(first, list) else first
        name = dtype_name(self.operands[first].dtype)
        return f"{name}->{self.result.name}" if self.op == "Cast" else name

    @property
    def inputs(self) -> list[np.ndarray]:
        """The operands that are not known when the graph is made."""
        return [x for x, known in zip(self.operands, self.is_known, strict=True) if not known]

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


def _of_passes() -> list[list[Example]]:
    """Examples of ops that no harness needs: passes find them, or rules use them if they can."""
    numbers = np.array([[-2.5, -1.0, 0.0], [0.25, 1.0, 7.5]], np.float32)
    ratios = np.array([-2.5, 7, 1e10, 1e-3, 5e9], np.float32)
    infinities = np.array([[np.inf, np.inf], [-np.inf, np.inf], [1, np.inf]], np.float32)
    integers = np.array(
        [-(2**31), -(2**31) + 1, -70000, -7, -1, 0, 1, 6, 70001, 2**31 - 1, 756803085], np.int32
    )
    neighbours = np.where(integers > 0, integers - 1, integers + 1)
    divisors = np.array([3, -5, 2, 7, 1, -2, 4, 65536, 3, 7, -3], np.int32)
    amounts = np.array([1, 2, 31, 4, 5, 30, 0, 17, 3, 1, 2], np.int32)
    unary = {
        np.float32: "Relu Relu6 LeakyRelu Elu Softplus LogSoftmax Square Inv Erf Erfc Rint".split(),
        np.int32: ["Abs", "Invert", "Neg", "Square"],
    }
    comparisons = "Less LessEqual Greater GreaterEqual Maximum"
    two, three = np.array(2.0, np.float32), np.array(3.0, np.float32)
    binary: list[tuple[np.ndarray, np.ndarray, str]] = [
        (numbers, numbers[::-1] + 0.5, "FloorMod SquaredDifference"),
        (ratios, ratios[::-1] + 3, "FloorDiv TruncateMod"),
        (np.abs(ratios), ratios[::-1] + 3, "FloorMod"),
        (infinities[:, 0], infinities[:, 1], "Atan2"),
        (two, three, "Atan2"),
        (integers, divisors, "FloorDiv FloorMod TruncateDiv TruncateMod Mul"),
        (integers, neighbours, f"BitwiseAnd BitwiseOr BitwiseXor {comparisons}"),
        (integers, amounts, "LeftShift RightShift"),
    ]
    axis = np.array([0], np.int32)
    large = np.stack([integers, integers[::-1] + 7, integers - 3, amounts * 3])
    totals = [
        [Example(op, {"keep_dims": False}, [large.astype(dtype), axis], [False, True], of)]
        for op, dtype, of in (
            ("Sum", np.int32, tf.int32),
            ("Sum", np.int64, tf.int64),
            ("Prod", np.int32, tf.int32),
        )
    ]
    count = np.array(4, np.int32)
    top_k = Example("TopKV2", {"sorted": True}, [integers, count], [False, True], tf.int32)
    bits = Example("Bitcast", {"type": tf.int32}, [numbers], [False], tf.int32)
    places, update = np.array([[1]], np.int32), np.array([2.0], np.float32)
    with_infinity = np.array([np.inf, -np.inf, 1], np.float32)
    scattered = [
        [Example(op, {}, [with_infinity, places, update], [False] * 3, tf.float32)]
        for op in ("TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub")
    ]
    small, huge = [1e-30, -1e-7, 1e-4, 0.5], [3e38]
    near_zero = [
        [Example(op, {}, [np.array(values, np.float32)], [False], tf.float32, atol=0)]
        for op, values in (("Log1p", small + huge), ("Sign", small + huge), ("Sin", small))
    ]
    flags, some = np.array([True, False]), np.array([False, True])
    selected = Example("SelectV2", {}, [flags, flags, some], [False] * 3, tf.bool)
    along = Example("ReverseV2", {}, [flags, axis], [False, True], tf.bool)
    rows = np.arange(20.0).reshape(4, 5)
    columns = [np.array([[2, 0], [1, 1], [4, 3], [0, 2]], np.int32), np.array(1, np.int32)]
    batches = [
        [
            Example(
                "GatherV2",
                {"batch_dims": 1},
                [rows.astype(dtype), *columns],
                [False, False, True],
                tf.as_dtype(dtype),
            )
        ]
        for dtype in (np.float32, np.int32, np.bool_)
    ]
    to_bool = [
        [Example("Cast", {"DstT": tf.bool}, [x], [False], tf.bool)] for x in (ratios, integers)
    ]
    bounds = [np.array(bound, np.int32) for bound in (-5, 70000)]
    clip = Example("ClipByValue", {}, [integers, *bounds], [False] * 3, tf.int32)
    edge = [np.array([[1, 2]], np.int32), integers[-1]]
    pad = Example("PadV2", {}, [integers, *edge], [False, True, True], tf.int32)
    slices = [
        [_strided_slice(integers.astype(dtype))] for dtype in (np.int32, np.bool_, np.float32)
    ]
    found = [
        [bits],
        [top_k],
        [clip],
        [pad],
        [selected],
        [along],
        *near_zero,
        *to_bool,
        *batches,
        *slices,
        *scattered,
        *totals,
    ]
    for kind, ops in unary.items():
        operand: np.ndarray = numbers if kind is np.float32 else integers
        found += [[Example(op, {}, [operand], [False], tf.as_dtype(kind))] for op in ops]
    for x, y, names in binary:
        found += [
            [
                Example(op, {}, [x, y], [False, known], tf.as_dtype(x.dtype))
                for known in (False, True)
            ]
            for op in names.split()
        ]
    return found


def _strided_slice(x: np.ndarray) -> Example:
    parameters = [np.array([number], np.int32) for number in (1, 8, 2)]
    masks = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    known = [False, True, True, True]
    return Example("StridedSlice", masks, [x, *parameters], known, tf.as_dtype(x.dtype))


def _are_parameters(op: str, count: int) -> list[bool]:
    """Which of so many operands are sizes or axes, which programs know when they are converted."""
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


def is_any_accepted(consumer: str, tried: Sequence[Example]) -> bool | None:
    """Whether a consumer accepts one of several examples, and computes no other integers.

    None if it takes none of them.
    """
    answers = [is_accepted(consumer, example) for example in tried]
    if not any(answer is not None for answer in answers):
        return None
    is_wrong = False in answers and not tried[0].result.is_floating
    return True in answers and not is_wrong


def is_accepted(consumer: str, example: Example) -> bool | None:
    """Whether a consumer computes what TensorFlow does, in all of its runtimes that have the op.

    None if it does not take the op.
    """
    expected = example.results()
    try:
        results = runtimes.run(consumer, flat_entry(example.apply, example.inputs))
    except Exception as error:
        logging.getLogger(__name__).debug("%s: %s", example.op, error)
        return None
    return all(
        _are_close(e, a, example.atol)
        for found in results.values()
        for e, a in zip(expected, found, strict=True)
    )


def _are_close(expected: np.ndarray, actual: np.ndarray, atol: float) -> bool:
    if expected.shape != actual.shape:
        return False
    if expected.dtype.kind in "biu":
        return bool(np.array_equal(expected, actual.astype(expected.dtype)))
    wide = np.complex128 if expected.dtype.kind == "c" else np.float64
    e, a = expected.astype(wide), actual.astype(wide)
    is_number = ~np.isnan(e)
    return bool(np.allclose(e[is_number], a[is_number], rtol=1e-3, atol=atol))


def probe(
    consumer: str, tried: Sequence[Sequence[Example]], workers: int
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The dtypes that a consumer accepts for each op, and those that it does not take."""
    accepted: dict[str, set[str]] = collections.defaultdict(set)
    refused: dict[str, set[str]] = collections.defaultdict(set)
    wrong: dict[str, set[str]] = collections.defaultdict(set)
    # A fork of this process would inherit locks of TensorFlow's threads.
    context = multiprocessing.get_context("spawn")
    with pebble.ProcessPool(workers, 200, _start_worker, context=context) as pool:
        futures = {
            pool.schedule(is_any_accepted, (consumer, group), timeout=_SECONDS): group[0]
            for group in tried
        }
        for future in tqdm.tqdm(
            concurrent.futures.as_completed(futures), total=len(futures), desc=consumer
        ):
            example, error = futures[future], future.exception()
            answer = None if error is not None else future.result()
            # One that ends the process or takes too long may have done so for its operands.
            found = wrong if error is not None or answer is False else refused
            (accepted if answer else found)[example.name].add(example.dtype)
    taken = {op: sorted(dtypes - wrong[op]) for op, dtypes in accepted.items()}
    others = {op: sorted(dtypes - accepted[op]) for op, dtypes in refused.items()}
    return {k: v for k, v in taken.items() if v}, {k: v for k, v in others.items() if v}


def _start_worker() -> None:
    logging.disable(logging.CRITICAL)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def versions(consumer: str) -> dict[str, str]:
    """The versions of the packages that decide what a consumer runs."""
    found = {}
    for package in CONSUMERS[consumer]:
        try:
            found[package.removesuffix("-cpu")] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    if consumer == "tfjs":
        found = json.loads((node.SOURCES / "package.json").read_text())["dependencies"]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.probe_consumers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--consumer", nargs="+", choices=CONSUMERS, default=list(CONSUMERS))
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="print differences, write nothing")
    args = parser.parse_args(argv)
    tf.get_logger().setLevel("ERROR")
    with jax.enable_x64(True):
        tried = examples(list(all_harnesses().values()))
    differences = 0
    for consumer in args.consumer:
        found, refused = probe(consumer, tried, args.workers)
        if not args.check:
            tables.write(consumer, versions(consumer), found, refused)
            continue
        before = {(op, d) for op, dtypes in tables.table(consumer).items() for d in dtypes}
        now = {(op, d) for op, dtypes in found.items() for d in dtypes}
        for sign, pairs in (("+", now - before), ("-", before - now)):
            for op, dtype in sorted(pairs):
                print(f"{consumer}: {sign} {op} of {dtype}")
                differences += 1
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
