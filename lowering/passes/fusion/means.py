"""Finds means, which JAX writes as quotients of sums, and reductions of no elements."""

import math
from collections.abc import Sequence

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering import registry
from lowering.passes.fusion.patterns import Group, Search
from lowering.passes.rewriting import as_broadcast
from lowering.passes.simplify.keepdims import REDUCE_KEEPING

_MEAN = registry.new_primitive("reduce_mean")
_WINDOW_MEAN = registry.new_primitive("reduce_window_mean")
_WINDOW_MEAN.def_effectful_abstract_eval(lax.reduce_window_sum_p.abstract_eval)
_PRESENT_MEAN = registry.new_primitive("reduce_window_mean_of_present")
_PRESENT_MEAN.def_effectful_abstract_eval(lax.reduce_window_sum_p.abstract_eval)

# The dtypes of which sums need no wider one.
_WIDE = (np.float32, np.float64)


@_MEAN.def_abstract_eval
def _mean_aval(x, *, axes, keepdims):
    kept = (1 if i in axes else dim for i, dim in enumerate(x.shape) if keepdims or i not in axes)
    return jax.core.ShapedArray(tuple(kept), x.dtype)


def _mean_of_windows(div: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """A sum over windows, divided by their size, or by how many elements they have."""
    total = group.maker(div.invars[0], "reduce_window_sum")
    if total is None:
        return None
    if not isinstance(div.invars[1], jex_core.Literal):
        return _mean_of_present(div, total, group)
    sizes = total.params["window_dimensions"]
    if not all(isinstance(size, int) for size in sizes) or div.invars[1].val != math.prod(sizes):
        return None
    return [div.replace(primitive=_WINDOW_MEAN, invars=total.invars, params=total.params)]


def _mean_of_present(
    div: jex_core.JaxprEqn, total: jex_core.JaxprEqn, group: Group
) -> Sequence[jex_core.JaxprEqn] | None:
    """A sum over windows, divided by the sum of ones over the same windows, without the padding."""
    counts = group.maker(div.invars[1], "reduce_window_sum")
    ones = None if counts is None else group.maker(counts.invars[0], "broadcast_in_dim")
    if counts is None or ones is None or counts.params != total.params:
        return None
    (one, *_), (x,) = ones.invars, total.invars
    windows, sizes = total.params["window_dimensions"], x.aval.shape
    if not isinstance(one, jex_core.Literal) or one.val != 1 or x.aval.dtype != np.float32:
        return None
    # Along an axis without windows all counts are the same.
    are_alike = all(
        count == size or (count == 1 == window)
        for count, size, window in zip(ones.outvars[0].aval.shape, sizes, windows, strict=True)
    )
    if not are_alike or div.outvars[0].aval.shape != total.outvars[0].aval.shape:
        return None
    return [div.replace(primitive=_PRESENT_MEAN, invars=[x], params=total.params)]


def _of_nothing(reduce: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """A reduction of no elements; see `tfjs.quirks.reductions_of_nothing`."""
    (x,), axes = reduce.invars, reduce.params["axes"]
    if not any(isinstance(x.aval.shape[axis], int) and not x.aval.shape[axis] for axis in axes):
        return None
    with jax.ensure_compile_time_eval():
        nothing = jnp.zeros((0,), x.aval.dtype)
        value = np.asarray(reduce.primitive.bind(nothing, **{**reduce.params, "axes": (0,)}))
    number = jex_core.Literal(value, jax.core.ShapedArray((), value.dtype))
    return [as_broadcast(reduce, number, reduce.outvars[0], ())]


_REDUCTIONS = ("sum", "prod", "max", "min", "and", "or", "xor")

NATURAL_SEARCHES: dict[str, Search] = {
    "div": _mean_of_windows,
    **{f"reduce_{name}": _of_nothing for name in _REDUCTIONS},
}


def _mean(div: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """A sum, divided by the number of its terms."""
    total, count = div.invars
    keeping = group.maker(total, REDUCE_KEEPING.name)
    if keeping is not None and keeping.params["reduction"] == "reduce_sum":
        reduce = keeping
    else:
        reduce = group.maker(total, "reduce_sum")
    if reduce is None or not isinstance(count, jex_core.Literal):
        return None
    (x,), axes = reduce.invars, reduce.params["axes"]
    sizes = [x.aval.shape[axis] for axis in axes]
    is_mean = all(isinstance(size, int) for size in sizes) and count.val == math.prod(sizes) > 0
    if not is_mean or x.aval.dtype not in _WIDE:
        return None
    params = {"axes": axes, "keepdims": reduce is keeping}
    return [div.replace(primitive=_MEAN, invars=[x], params=params)]


# Searches that find a group once reductions keep their axes.
LATE_SEARCHES: dict[str, Search] = {"div": _mean}
