"""Registers gradients with TensorFlow, and frees those of a graph with it.

`tf.custom_gradient` visits all ops of a function in search of variables, and registers the gradient
of each call in a graph under a name of its own, in a registry that forgets nothing. As the gradient
refers to tensors, the graph would never be freed, nor would what was converted, nor its constants.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import record
from tensorflow.python.framework import ops as tf_ops

from lowering.ops import memo


def attach(
    results: Sequence[tf.Tensor], operands: Sequence[tf.Tensor], pull_back: Callable[..., Any]
) -> list[tf.Tensor]:
    """Results, with a gradient that TensorFlow does not find by the ops between.

    Args:
      results: the results, in the current graph or eager.
      operands: the tensors by which there is a gradient.
      pull_back: takes a cotangent for each result, and returns the gradient, or None, for each
        operand.
    """
    count = len(results)

    def gradient(*cotangents):
        # TensorFlow goes on with the operands alone.
        return [*(None for _ in results), *pull_back(*cotangents[:count])]

    tensors = [*results, *operands]
    if tf.executing_eagerly():
        with record.stop_recording():
            kept = [tf.identity(x) for x in tensors]
        record.record_operation("Lowered", kept, tensors, gradient)
        return kept[:count]
    graph = tf.compat.v1.get_default_graph()
    with record.stop_recording(), graph.gradient_override_map({"IdentityN": _name(gradient)}):
        kept = tf.identity_n(tensors)
    memo.of(graph)[kept[0].op, "gradient"] = gradient
    record.record_operation("Lowered", kept, tensors, gradient)
    return kept[:count]


@contextlib.contextmanager
def recording() -> Iterator[None]:
    """A context in which tapes record, even inside of one in which they do not."""
    is_stopped = pywrap_tfe.TFE_Py_TapeSetIsStopped()
    if is_stopped:
        pywrap_tfe.TFE_Py_TapeSetRestartOnThread()
    try:
        yield
    finally:
        if is_stopped:
            pywrap_tfe.TFE_Py_TapeSetStopOnThread()


def captured(tensors: Sequence[tf.Tensor]) -> tuple[tf.Tensor, ...]:
    """Tensors of the current graph in place of those from outside; a gradient refers to them.

    Inside of a branch in a loop, TensorFlow could not find those from outside.
    """
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if graph is None or not graph.building_function:
        return tuple(tensors)
    return tuple(map(graph.capture, tensors))


def _name(gradient: Callable[..., Any]) -> str:
    """The name by which TensorFlow finds a gradient as long as something else refers to it."""
    name = f"CustomGradient-{tf_ops.uid()}"
    # A proxy can be called as what it stands for.
    proxy = weakref.proxy(gradient)
    tf.RegisterGradient(name)(lambda op, *cotangents: proxy(*cotangents))
    entries = tf_ops.gradient_registry._registry
    weakref.finalize(gradient, entries.pop, name, None).atexit = False
    return name
