"""Applies functions of matrices to batches of matrices."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def on_batches(fun: Callable[..., Any], rank: int = 2) -> Callable[..., Any]:
    """A function of arrays of `rank` dimensions, made to take batches of them.

    Args:
      fun: a function of arrays and of keyword parameters.
      rank: the number of dimensions of its first operand. All operands have the same batch
        dimensions in front.
    """

    def batched(*operands: jax.Array, **params: Any) -> Any:
        num_batch_dims = operands[0].ndim - rank
        mapped = functools.partial(fun, **params)
        for _ in range(num_batch_dims):
            mapped = jax.vmap(mapped)
        if 0 not in operands[0].shape[:num_batch_dims]:
            return mapped(*operands)
        # An empty batch needs no computation. In some of these functions TensorFlow's graph
        # optimizer would divide by the batch size, zero, and crash the process.
        results = jax.eval_shape(mapped, *operands)
        return jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), results)

    return batched
