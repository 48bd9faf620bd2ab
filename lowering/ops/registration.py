"""Gradients that TensorFlow finds by name, freed with the graph that they are for.

`tf.custom_gradient` registers the gradient of each call in a graph under a name of its own, in a
registry that forgets nothing. As the gradient refers to tensors, the graph would never be freed,
nor would what was converted, nor its constants.
"""

import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops as tf_ops

from lowering.ops import memo


def free_gradient_with_graph(op: tf.Operation) -> None:
    """Lets the graph of an op hold the gradient of the op, which the registry holds now.

    The registry keeps a weak reference to the gradient, until it is freed.

    Args:
      op: an op with a gradient that has been registered for it alone.
    """
    name = op.get_attr("_gradient_op_type").decode()
    gradient: Callable[..., Any] = tf_ops.gradient_registry.lookup(name)
    # A proxy can be called as what it stands for.
    proxy = weakref.proxy(gradient)
    entries = tf_ops.gradient_registry._registry
    del entries[name]
    tf.RegisterGradient(name)(lambda op, *cotangents: proxy(op, *cotangents))
    weakref.finalize(gradient, entries.pop, name, None).atexit = False
    memo.of(op.graph)["gradient", name] = gradient
