"""Names of the ops of arguments and results, so that a graph can be read.

An argument `params["dense"]["kernel"]` is the result of an op `params/dense/kernel`, and a result
that the function returns as `{"loss": ...}` that of an op `result/loss`.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf

from lowering import callables
from lowering.ops import names

# The keys from the root of a pytree to a leaf.
Path = Sequence[Any]


def of_arguments(fun: Callable[..., Any], paths: Sequence[Path]) -> list[str]:
    """The name of each leaf of `(args, kwargs)`.

    Args:
      fun: the function whose parameters the arguments are for.
      paths: the paths of the leaves.
    """
    parameters = callables.positional(fun)
    result = []
    for (group, *path), *keys in ((path[:2], *path[2:]) for path in paths):
        first = _text(path[0])
        if group.idx == 0 and path[0].idx < len(parameters):
            first = parameters[path[0].idx]
        elif group.idx == 0:
            first = f"args/{first}"
        result.append(_joined(first, keys) or "argument")
    return result


def of_results(out_tree: jax.tree_util.PyTreeDef) -> list[str]:
    """The name of each leaf of a result."""
    # A class of the user's may not take any leaf; its results are numbered then.
    try:
        tree = jax.tree_util.tree_unflatten(out_tree, range(out_tree.num_leaves))
        paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(tree)[0]]
    except Exception:
        paths = []
    if len(paths) != out_tree.num_leaves:
        return [f"result/{i}" for i in range(out_tree.num_leaves)]
    return [_joined("result", path) for path in paths]


def named(
    tensors: Sequence[tf.Tensor], op_names: Sequence[str], always: bool = False
) -> list[tf.Tensor]:
    """Tensors that are results of ops with names.

    Args:
      tensors: any tensors.
      op_names: a name for each, or none at all.
      always: whether they are to be results of ops made now, even those that have their names.
    """
    if not op_names and not always:
        return list(tensors)
    if not op_names:
        return [tf.identity(tensor) for tensor in tensors]
    return [
        tf.identity(tensor, name=name) if always or not _has_name(tensor, name) else tensor
        for tensor, name in zip(tensors, op_names, strict=True)
    ]


def _has_name(tensor: tf.Tensor, name: str) -> bool:
    """Whether a tensor of the graph that is made now has a name, but for a number at its end."""
    graph = tf.compat.v1.get_default_graph()
    if isinstance(tensor, tf.__internal__.EagerTensor) or tensor.graph is not graph:
        return False
    scope = graph.get_name_scope()
    found = tensor.op.name.removeprefix(f"{scope}/" if scope else "")
    return re.fullmatch(rf"{re.escape(name)}(_\d+)?", found) is not None


def _joined(first: str, keys: Path) -> str:
    return names.for_scope("/".join([first, *map(_text, keys)]))


def _text(key: Any) -> str:
    return jax.tree_util.keystr((key,), simple=True)
