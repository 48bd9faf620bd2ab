"""Numbers of eight bits or fewer as inputs, outputs and parameters of exported models.

TensorFlow has next to no kernels for their dtypes, and its passes over graphs do not know all of
them. So a model takes, returns and keeps them in a wider dtype, and JAX casts between the two.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from lowering.formats.rounding import HAS_CAST
from lowering.ops.dtypes import HELD
from lowering.targets import Target


def of_argument(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the input or output of a model in place of one of JAX's."""
    return HELD.get(dtype, dtype) if target.holds else dtype


def of_parameter(dtype: Any, target: Target) -> np.dtype:
    """The dtype of the variable of a model in place of one of JAX's."""
    return dtype if dtype in HAS_CAST and not target.holds else HELD.get(dtype, dtype)


def on_held(fun: Callable[..., Any], dtypes: Sequence[Any], target: Target) -> Callable[..., Any]:
    """A JAX function like `fun`, with arguments and results in the dtypes that a model has.

    Args:
      fun: a function of positional arguments.
      dtypes: the dtypes in which `fun` takes the leaves of its arguments.
      target: who will run the model.
    """

    def result(y: Any) -> Any:
        is_held = getattr(y, "dtype", None) in HELD
        return y.astype(of_argument(y.dtype, target)) if is_held else y

    @functools.wraps(fun, updated=())
    def held(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        given = [
            x.astype(dtype) if dtype in HELD else x for x, dtype in zip(leaves, dtypes, strict=True)
        ]
        return jax.tree_util.tree_map(result, fun(*jax.tree_util.tree_unflatten(tree, given)))

    return held
