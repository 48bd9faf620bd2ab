"""Chooses between ops for TensorFlow's kernels and ops for XLA's compiler.

What is fastest in TensorFlow's own kernels is not always what XLA compiles well, or at all. Rules
ask their context; modules below the rules ask here.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.ops import control_flow_util

from lowering.targets import Mode

# The devices whose kernels may run what is not compiled.
_DEVICES = ["CPU", "GPU"]


def is_eager() -> bool:
    """Whether the ops that are made now run at once; it is told faster than the mode."""
    return tf.executing_eagerly()


def current() -> Mode:
    """How the ops that are made now are executed, as far as it is known."""
    if tf.executing_eagerly():
        return Mode.EAGER
    graph = tf.compat.v1.get_default_graph()
    is_compiled = control_flow_util.GraphOrParentsInXlaContext(graph)
    return Mode.COMPILED if is_compiled else Mode.GRAPH


def by_mode(op_by_op: Callable[..., Any], compiled: Callable[..., Any], *operands: Any) -> Any:
    """The results of one of two functions: of `compiled` where XLA compiles the ops made now.

    A graph that may be compiled later holds both. XLA compiles, and TensorFlow runs, only the one
    that is theirs, so that an op in `op_by_op` needs no XLA kernel.

    Args:
      op_by_op: what TensorFlow runs itself, eagerly or in a graph.
      compiled: what XLA compiles.
      *operands: the tensors that either is applied to.

    Returns:
      A tensor or a list of tensors, of the same dtypes and shapes from both functions.
    """
    mode = current()
    if mode is not Mode.GRAPH:
        return (op_by_op if mode is Mode.EAGER else compiled)(*operands)
    # For XLA the index is the last one, as its device is none of those listed.
    index = tf.raw_ops.DeviceIndex(device_names=_DEVICES)
    run = functools.partial(op_by_op, *operands)
    return tf.switch_case(index, [run] * len(_DEVICES) + [functools.partial(compiled, *operands)])


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """A context in which ops run at once, though a graph is being made, and tapes record them."""
    if tf.executing_eagerly():
        yield
        return
    with tf.init_scope():
        # The scope keeps all tapes from recording, those that are made in it, too.
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
        try:
            yield
        finally:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()
