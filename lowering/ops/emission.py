"""TensorFlow ops in a dtype that has a kernel.

`emit` is for arithmetic: where TensorFlow has no kernel for a dtype, the op runs in a wider one
and the result is rounded back. `move` is for ops that only move elements: they run on the same
bits under another dtype of the same width.
"""

import contextvars
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

from lowering import targets
from lowering.errors import UnsupportedError
from lowering.ops import (
    activations,
    constant_shapes,
    decided,
    dtypes,
    kernels,
    making,
    memo,
    modes,
    optimizer,
    ranks,
    swapped,
)


@functools.cache
def _inputs(op: str) -> Sequence[Any]:
    """The definitions of the inputs of an op."""
    op_def = op_def_registry.get(op)
    if op_def is None:
        raise ValueError(f"TensorFlow has no op {op!r}")
    return op_def.input_arg


@functools.cache
def _input_names(op: str) -> tuple[str, ...]:
    # In Python some inputs have other names (the axis of a reduction), in the same order.
    parameters = inspect.signature(getattr(tf.raw_ops, op)).parameters
    return tuple(parameters)[: len(_inputs(op))]


@functools.cache
def _type_attr(op: str) -> str:
    """The type attribute of the first input."""
    return _inputs(op)[0].type_attr


@functools.cache
def _typed_inputs(op: str) -> tuple[bool, ...]:
    """Which inputs have the same type attribute as the first."""
    return tuple(arg.type_attr == _type_attr(op) for arg in _inputs(op))


def _call(op: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    # The first input of SelectV2 is the condition, which says nothing about what is selected.
    is_of_bool = op == "SelectV2" and operands[1].dtype == tf.bool
    if is_of_bool and not kernels.supports(op, tf.bool):
        return _without_kernel(op, operands, attrs)
    if op in ranks.FITTED and ranks.are_too_many(op, operands):
        return ranks.fitted(op, functools.partial(_run, op), operands, attrs)
    if swapped.may_swap(op, operands):
        return swapped.with_other_rank(op, *operands)
    if (place := decided.place_of_zero(op, operands)) is not None:
        op, operands = decided.with_other_number(op, operands, place)
    operands = constant_shapes.with_other_shapes(op, operands)
    if activations.are_lost(op, operands):
        operands = activations.with_more_axes(operands)
    return _run(op, *operands, **attrs)


def _run(op: str, *operands: Any, **attrs: Any) -> Any:
    def run(op: str, *operands: Any) -> Any:
        return making.run(op, _input_names(op), operands, attrs)

    return optimizer.emitted(op, operands, run)


def _call_in(compute, convert, op: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """Runs an op in the dtype `compute`; `convert` converts its operands, and its results back."""
    dtype = making.first_tensor(operands).dtype

    def to(o):
        is_list = isinstance(o, list | tuple)
        return [convert(x, compute) for x in o] if is_list else convert(o, compute)

    typed = zip(operands, _typed_inputs(op), strict=True)
    results = _call(op, tuple(to(o) if is_typed else o for o, is_typed in typed), attrs)
    return tf.nest.map_structure(lambda y: convert(y, dtype) if y.dtype == compute else y, results)


def cast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """`x` in another dtype; `x` itself if it has it already. NumPy's wrap-around for integers."""
    if x.dtype == dtype:
        return x
    if dtype == tf.bool and not kernels.casts(x.dtype, dtype):
        return emit("NotEqual", x, tf.constant(0, x.dtype))
    if ranks.are_too_many("Cast", (x,)):
        return ranks.fitted("Cast", lambda merged: tf.cast(merged, dtype), (x,), {})
    return tf.cast(x, dtype)


def bitcast(x: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """The bits of `x` as another dtype, as `tf.bitcast`; a bitcast of a bitcast is one.

    Raises:
      ValueError: in a graph, if the last dimension does not fit a wider dtype.
      tf.errors.InvalidArgumentError: if it does not, eagerly.
    """
    if modes.is_eager():
        return x if x.dtype == dtype else tf.bitcast(x, dtype)
    if _is_cast(x.dtype, dtype):
        return tf.cast(x, dtype)
    sources = memo.of_graph().setdefault("sources of bitcasts", {})
    x = sources.get(id(x), (x, x))[0]
    if x.dtype == dtype:
        return x
    result = memo.once(("bitcast", id(x), dtype), lambda: tf.bitcast(x, dtype), x)
    sources[id(result)] = (x, result)
    return result


def _is_cast(source: tf.DType, dtype: tf.DType) -> bool:
    """Whether bits are read in another dtype by a cast, as integers of one size wrap around."""
    are_integers = source.is_integer and dtype.is_integer and source.size == dtype.size
    return are_integers and targets.current().lacks("Bitcast", source.name)


_SUBSTITUTES: dict[str, Callable[..., Any]] = {}
# The ops whose substitutes are being made; that of an op cannot need the op itself.
_UNDERWAY: contextvars.ContextVar[frozenset[str]] = contextvars.ContextVar(
    "underway", default=frozenset()
)

Fun = TypeVar("Fun", bound=Callable[..., Any])


def substitute(op: str) -> Callable[[Fun], Fun]:
    """Registers a function of the operands of an op as what takes its place; see `substitutes`."""

    def decorate(fun):
        _SUBSTITUTES[op] = fun
        return fun

    return decorate


def _without_kernel(op: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> Any:
    """An op that has a kernel for no dtype.

    For a runtime another op takes its place if there is one. Else the op is left to the converter,
    which may know it in this form.
    """
    if targets.current().has_tensorflow_kernels:
        dtype = making.first_tensor(operands).dtype
        raise UnsupportedError(f"TensorFlow has no {op} for {dtype.name} nor for a wider dtype")
    underway, name = _UNDERWAY.get(), kernels.listed(op, attrs)
    if name not in _SUBSTITUTES or name in underway:
        return _call(op, operands, attrs)
    token = _UNDERWAY.set(underway | {name})
    try:
        return _SUBSTITUTES[name](*operands, **attrs)
    finally:
        _UNDERWAY.reset(token)


def emit(op: str, *operands: Any, modular: bool = False, **attrs: Any) -> Any:
    """Runs an arithmetic op, in the narrowest dtype that has a kernel.

    Args:
      op: the name of a TensorFlow op, as in `tf.raw_ops`.
      *operands: its inputs in the order of the op's definition.
      modular: whether the op computes modulo two to the power of the width, so that unsigned
        integers can be computed as signed ones of the same width.
      **attrs: its attributes.

    Raises:
      ValueError: if TensorFlow has no such op.
      UnsupportedError: if the op has no kernel for the dtype, nor for a wider one.
    """
    dtype = making.first_tensor(operands).dtype
    attr = _type_attr(op)
    compute = dtype
    if modular and not kernels.supports(op, dtype, attr) and dtypes.carrier(dtype) is not None:
        compute = dtypes.carrier(dtype)
    while compute is not None and not kernels.supports(op, compute, attr, attrs):
        compute = dtypes.wider(compute)
    if compute is None:
        return _without_kernel(op, operands, attrs)
    if compute == dtype:
        return _call(op, operands, attrs)
    return _call_in(compute, cast, op, operands, attrs)


def move(op: str, *operands: Any, **attrs: Any) -> Any:
    """Runs an op that only moves elements, on a dtype of the same width that has a kernel.

    Arguments as for `emit`.

    Raises:
      ValueError: if TensorFlow has no such op.
      UnsupportedError: if the op has no kernel for a dtype of this width.
    """
    dtype = making.first_tensor(operands).dtype
    attr = _type_attr(op)
    if kernels.supports(op, dtype, attr, attrs):
        return _call(op, operands, attrs)
    carrier = dtypes.carrier(dtype)
    if carrier is not None and kernels.supports(op, carrier, attr, attrs):
        return _call_in(carrier, bitcast, op, operands, attrs)
    if dtype == tf.bool and kernels.supports(op, tf.int32, attr, attrs):
        return _call_in(tf.int32, cast, op, operands, attrs)
    return _without_kernel(op, operands, attrs)
