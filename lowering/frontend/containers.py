"""Plain containers in place of those that TensorFlow's modules make of them."""

from typing import Any

from tensorflow.python.trackable import data_structures


def plain(tree: Any) -> Any:
    """`tree` with the wrappers undone that `tf.Module` puts around its attributes.

    A list, tuple or dictionary assigned to an attribute of a `tf.Module` becomes a container of
    another type, which JAX would take for a leaf.
    """
    if isinstance(tree, data_structures.ListWrapper | list) and type(tree) in _LISTS:
        return [plain(item) for item in tree]
    if isinstance(tree, data_structures._TupleWrapper) or type(tree) is tuple:
        items = [plain(item) for item in tree]
        fields = getattr(tree, "_fields", None)
        return tuple(items) if fields is None else type(tree.__wrapped__)(*items)
    if isinstance(tree, data_structures._DictWrapper) or type(tree) is dict:
        return {key: plain(value) for key, value in tree.items()}
    return tree


_LISTS = (list, data_structures.ListWrapper, data_structures.List)
