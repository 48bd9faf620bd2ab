"""Ops that a graph needs only once."""

from collections.abc import Callable, Hashable
from typing import Any

import tensorflow as tf

# The attribute of a graph that holds its memo, so that both are freed together.
_ATTRIBUTE = "_lowering_memo"


def of(graph: tf.Graph) -> dict[Any, Any]:
    """The memo of a graph."""
    if not hasattr(graph, _ATTRIBUTE):
        setattr(graph, _ATTRIBUTE, {})
    return getattr(graph, _ATTRIBUTE)


def collected(
    graph: tf.Graph, key: str, find: Callable[[tf.Operation], Hashable | None]
) -> set[Hashable]:
    """What `find` returns for the ops of a graph, without None; only new ops are looked at."""
    ops = graph.get_operations()
    known, found = of(graph).get(("collected", key), (0, set()))
    found.update(x for op in ops[known:] if (x := find(op)) is not None)
    of(graph)["collected", key] = len(ops), found
    return found


def has_op(graph: tf.Graph, kind: str) -> bool:
    """Whether a graph has an op of a type."""
    return kind in collected(graph, "types", lambda op: op.type)


def of_graph() -> dict[Any, Any]:
    """The memo of the graph that ops are added to now."""
    return of(tf.compat.v1.get_default_graph())


def once(key: Any, make: Callable[[], Any], *kept: Any) -> Any:
    """What `make()` returns, made once for a key in each graph.

    Args:
      key: hashable. It may hold identities of objects.
      make: makes ops.
      *kept: those objects; they are kept, so that their identities stay their own.
    """
    memo = of_graph()
    if key not in memo:
        memo[key] = make(), kept
    return memo[key][0]
