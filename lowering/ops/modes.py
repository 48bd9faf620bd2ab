"""Ops for code that XLA compiles, and ops for code that it does not.

What is fastest in TensorFlow's own kernels is not always what XLA compiles well, or at all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

from lowering.targets import target

if TYPE_CHECKING:
    from lowering.core.context import Context

# The devices whose kernels may run what is not compiled.
_DEVICES = ["CPU", "GPU"]


def is_compiled() -> bool:
    """Whether the ops that are made now are sure to be compiled by XLA.

    They are inside of a `tf.function` with `jit_compile=True`. Others may yet be: a graph can be
    saved, loaded, and called from such a function.
    """
    if tf.executing_eagerly():
        return False
    return control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph())


def takes_xla_ops(ctx: Context) -> bool:
    """Whether the ops that are made now are sure to be compiled, for a target that has XLA's."""
    return ctx.target == target.XLA and is_compiled()


def choose(
    kernels: Callable[..., tf.Tensor], xla: Callable[..., tf.Tensor], *operands: tf.Tensor
) -> tf.Tensor:
    """The result of one of two functions, whether XLA compiles the ops made now or not.

    Where this cannot be known yet, the graph holds both. XLA compiles, and TensorFlow runs, only
    the one that is theirs.

    Args:
      kernels: a `tf.function` for TensorFlow's own kernels.
      xla: a `tf.function` for XLA, with the same result.
      *operands: their arguments.
    """
    if tf.executing_eagerly():
        return kernels.python_function(*operands)
    if is_compiled():
        return xla.python_function(*operands)
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in operands]
    ours, theirs = (f.get_concrete_function(*specs) for f in (kernels, xla))
    # To XLA the device is none of those listed.
    (result,) = tf.raw_ops.Case(
        branch_index=tf.raw_ops.DeviceIndex(device_names=_DEVICES),
        input=list(operands),
        Tout=[ours.output_dtypes],
        branches=[ours] * len(_DEVICES) + [theirs],
        output_shapes=[ours.output_shapes],
    )
    return result


def by_execution(op_by_op: Callable[..., Any], compiled: Callable[..., Any], *operands: Any) -> Any:
    """Like `choose`, of Python functions with any number of results, traced at each call.

    An op in the one that is not compiled needs no XLA kernel.

    Args:
      op_by_op: what TensorFlow runs itself, eagerly or in a graph.
      compiled: what XLA compiles.
      *operands: the tensors that either is applied to.

    Returns:
      A tensor or a list of tensors, of the same dtypes and shapes from both functions.
    """
    if tf.executing_eagerly():
        return op_by_op(*operands)
    if is_compiled():
        return compiled(*operands)
    index = tf.raw_ops.DeviceIndex(device_names=_DEVICES)
    run = functools.partial(op_by_op, *operands)
    return tf.switch_case(index, [run] * len(_DEVICES) + [functools.partial(compiled, *operands)])
