"""Unwraps the containers that TensorFlow makes of attributes of its modules.

A list, tuple or dictionary assigned to an attribute of a `tf.Module` becomes a container of another
type, which JAX takes for a leaf. JAX could be told of these types, but only for the whole process
and for good; so arguments and results are rewritten instead.
"""

from typing import Any

import jax
from tensorflow.python.trackable import data_structures

_LISTS = (data_structures.ListWrapper, data_structures.List)
_MAPPINGS = (data_structures._DictWrapper, data_structures.Mapping)
WRAPPERS = (*_LISTS, *_MAPPINGS, data_structures._TupleWrapper)


def plain(tree: Any) -> Any:
    """A pytree without wrappers, whatever contains them; `tree` itself if there are none."""
    # Importing jax.experimental.jax2tf tells JAX of the wrappers: they would be no leaves then.
    leaves, structure = jax.tree_util.tree_flatten(tree, lambda x: type(x) in WRAPPERS)
    if not any(type(leaf) in WRAPPERS for leaf in leaves):
        return tree
    return jax.tree_util.tree_unflatten(structure, map(_unwrapped, leaves))


def _unwrapped(leaf: Any) -> Any:
    """What a wrapper is for, with what it contains; any other leaf itself."""
    return plain(content(leaf)) if type(leaf) in WRAPPERS else leaf


def content(wrapper: Any) -> Any:
    """The plain container that a wrapper is for; what it contains may be wrapped."""
    if type(wrapper) in _LISTS:
        return list(iter(wrapper))
    if type(wrapper) is data_structures.Mapping:
        return dict(wrapper)
    if type(wrapper) is data_structures._DictWrapper:
        return wrapper.__wrapped__
    items, kind = list(wrapper), type(wrapper.__wrapped__)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)
