"""Applies functions of matrices to batches of matrices."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def batched(fun: Callable[..., Any], num_batch_dims: int, **params: Any) -> Callable[..., Any]:
    """Returns `fun` of arrays and `params`, mapped over the leading dimensions of the arrays."""
    fun = functools.partial(fun, **params)
    for _ in range(num_batch_dims):
        fun = jax.vmap(fun)

    def apply(*args: jax.Array) -> Any:
        if all(size != 0 for size in args[0].shape[:num_batch_dims]):
            return fun(*args)
        # An empty batch needs no computation. In some of these functions TensorFlow's graph
        # optimizer would divide by the batch size, zero, and crash the process.
        results = jax.eval_shape(fun, *args)
        return jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), results)

    return apply
