"""Applies functions of matrices to batches of matrices."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp


def batched(fun: Callable[..., Any], num_batch_dims: int, **params: Any) -> Callable[..., Any]:
    """Returns `fun`, mapped over the leading dimensions of its arguments.

    Args:
      fun: a function of unbatched arrays and of `params`.
      num_batch_dims: how many leading dimensions every argument has.
      **params: keyword arguments of `fun`.
    """
    fun = functools.partial(fun, **params)
    for _ in range(num_batch_dims):
        fun = jax.vmap(fun)

    def apply(*args: jax.Array) -> Any:
        if all(size != 0 for size in args[0].shape[:num_batch_dims]):
            return fun(*args)
        # An empty batch needs no computation. In some of these functions Grappler's constant
        # folding, together with its arithmetic optimization, would divide by the batch size, zero,
        # and crash the process.
        results = jax.eval_shape(fun, *args)
        return jax.tree_util.tree_map(lambda x: jnp.zeros(x.shape, x.dtype), results)

    return apply
