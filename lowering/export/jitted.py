"""`jax.jit` of functions that close over large arrays."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat
from lowering.avals import is_key
from lowering.ops import constants
from lowering.passes.inlining import inline_calls


def jitted(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function like `jax.jit(fun)`, for which XLA compiles no large arrays.

    XLA takes ten seconds for constants of 200 MB, and four times their memory. So the large arrays
    that `fun` closes over become arguments.

    Args:
      fun: a function of pytrees of arrays.
    """
    compiled: dict[Any, Callable[..., Any]] = {}
    plain = jax.jit(fun)

    @functools.wraps(fun, updated=())
    def call(*args: Any) -> Any:
        leaves, tree = jax.tree_util.tree_flatten(args)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return plain(*args)
        structs = ((np.shape(x), jax.dtypes.result_type(x)) for x in leaves)
        key = tree, *structs, *jax_compat.settings().items()
        if key not in compiled:
            compiled[key] = _with_large_arguments(plain.trace(*args)) or plain
        return compiled[key](*args)

    return call


def _with_large_arguments(traced: Any) -> Callable[..., Any] | None:
    """A function that has been traced, with large arrays as arguments; None if it has none."""
    jaxpr = inline_calls(traced.jaxpr, frozenset())
    large = {i: x for i, x in enumerate(jaxpr.consts) if _is_large(x)}
    if not large:
        return None

    @jax.jit
    def run(large: dict[int, Any], *args: Any) -> Any:
        consts = [large.get(i, x) for i, x in enumerate(jaxpr.consts)]
        results = jex_core.jaxpr_as_fun(jex_core.ClosedJaxpr(jaxpr.jaxpr, consts))(
            *jax.tree_util.tree_leaves(args)
        )
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(traced.out_info), results)

    return functools.partial(run, large)


def _is_large(x: Any) -> bool:
    """Whether a constant of a jaxpr is an array of many bytes."""
    is_array = isinstance(x, np.ndarray | jax.Array) and not is_key(x.dtype)
    return is_array and x.nbytes > constants.LARGE_BYTES
