"""Dtypes of inputs, outputs and parameters that differ between an exported model and JAX.

TensorFlow has next to no kernels for numbers of eight bits or fewer, and its graph passes do not
know all of their dtypes. So a model takes, returns and keeps them in a wider dtype, and JAX casts
between the two. A PRNG key becomes an array of uint32, whose last dimension has its words.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from lowering import jax_compat
from lowering.avals import is_key
from lowering.formats.rounding import HAS_CAST
from lowering.ops.dtypes import HELD
from lowering.targets import Target


def of_argument(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the input or output of a model in place of one of JAX's."""
    return HELD.get(dtype, dtype) if target.is_consumer else dtype


def of_parameter(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the variable of a model in place of one of JAX's."""
    return dtype if dtype in HAS_CAST and target.has_tensorflow_kernels else HELD.get(dtype, dtype)


def words(leaf: Any) -> Any:
    """The words of an array of PRNG keys, or of a `jax.ShapeDtypeStruct` of one; else the leaf."""
    if not hasattr(leaf, "dtype") or not is_key(leaf.dtype):
        return leaf
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.eval_shape(jax.random.key_data, leaf)
    return np.asarray(jax.random.key_data(leaf))


def words_shape(shape: Sequence[Any], dtype: Any) -> tuple[Any, ...]:
    """The shape of the words of keys, which may be symbolic; that of other arrays is theirs."""
    return (*shape, *jax_compat.key_shape(dtype)) if is_key(dtype) else tuple(shape)


def on_held(fun: Callable[..., Any], dtypes: Sequence[Any], target: Target) -> Callable[..., Any]:
    """A JAX function like `fun`, with arguments and results in the dtypes that a model has.

    Args:
      fun: a function of positional arguments.
      dtypes: the dtypes in which `fun` takes the leaves of its arguments.
      target: who will run the model.
    """

    def argument(x: Any, dtype: Any) -> Any:
        if is_key(dtype):
            return jax.random.wrap_key_data(x, impl=jax_compat.key_impl(dtype))
        return x.astype(dtype) if dtype in HELD else x

    def result(y: Any) -> Any:
        if hasattr(y, "dtype") and is_key(y.dtype):
            return jax.random.key_data(y)
        is_held = getattr(y, "dtype", None) in HELD
        return y.astype(of_argument(y.dtype, target)) if is_held else y

    @functools.wraps(fun, updated=())
    def held(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        given = [argument(x, dtype) for x, dtype in zip(leaves, dtypes, strict=True)]
        return jax.tree_util.tree_map(result, fun(*jax.tree_util.tree_unflatten(tree, given)))

    return held
