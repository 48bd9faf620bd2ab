"""The parameters that an exported model keeps, as variables."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering.avals import is_key
from lowering.boundary import models
from lowering.export import arguments
from lowering.frontend import exchange
from lowering.ops import constants
from lowering.targets import Target


@dataclasses.dataclass(frozen=True)
class Parameters:
    """What an exported model keeps; all its functions share it.

    Attributes:
      tree: the pytree of the arrays, or None if there are no parameters.
      dtypes: the dtypes of its leaves.
      arrays: its leaves, as the model keeps them.
      variables: a variable for each.
      closed_over: variables for the large arrays that the functions close over.
    """

    tree: Any
    dtypes: Sequence[np.dtype]
    arrays: Sequence[np.ndarray]
    variables: Sequence[tf.Variable]
    closed_over: constants.Variables = dataclasses.field(default_factory=dict)

    def first_argument(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a function that come before those of a caller."""
        return () if self.tree is None else (jax.tree_util.tree_unflatten(self.tree, leaves),)


def parameters(params: Any, target: Target) -> Parameters:
    """The parameters of a model that a target runs; None if it has none.

    Raises:
      TypeError: for leaves that are no arrays of numbers.
    """
    if params is None:
        return Parameters(None, (), (), ())
    check_leaves(params)
    with_paths, tree = jax.tree_util.tree_flatten_with_path(params)
    for path, leaf in with_paths:
        where = jax.tree_util.keystr(path)
        if isinstance(leaf, jax.ShapeDtypeStruct | jax.core.ShapedArray):
            place = f" at params{where}" if where else ""
            raise TypeError(f"params takes arrays, not {leaf!r}{place}, which has no values")
    leaves = [leaf for _, leaf in with_paths]
    given = [_as_jax_has_it(leaf) for leaf in leaves]
    arrays = list(map(np.asarray, given))
    dtypes = [
        leaf.dtype if not np.isscalar(leaf) and is_key(leaf.dtype) else x.dtype
        for leaf, x in zip(leaves, arrays, strict=True)
    ]
    kept = [x.astype(models.of_parameter(x.dtype, target), copy=False) for x in arrays]
    variables = []
    for x, array, leaf in zip(kept, arrays, given, strict=True):
        is_shared = x is array and isinstance(leaf, jax.Array) and _is_on_cpu(leaf)
        value = exchange.to_tensor(leaf) if is_shared else x
        variables.append(tf.Variable(value, trainable=False))
    return Parameters(tree, dtypes, kept, variables)


def check_leaves(params: Any) -> None:
    """Raises a TypeError for leaves of parameters that are no arrays or numbers."""
    for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]:
        if not np.isscalar(leaf) or isinstance(leaf, str | bytes):
            arguments.check_leaf("params", leaf, where=jax.tree_util.keystr(path))


def _as_jax_has_it(leaf: Any) -> Any:
    """A leaf in the dtype that JAX gives it, without a copy if it is that already."""
    if isinstance(leaf, np.ndarray) and jax.dtypes.canonicalize_dtype(leaf.dtype) == leaf.dtype:
        return leaf
    return models.key_data(jax.numpy.asarray(leaf))


def _is_on_cpu(array: jax.Array) -> bool:
    return {device.platform for device in array.devices()} == {"cpu"}
