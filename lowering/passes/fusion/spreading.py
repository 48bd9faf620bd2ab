"""Gradients of means over windows side by side, in which each element is repeated.

JAX puts zeros between the elements, and sums over windows as large as the gaps: each window has one
element. Positions that no window of the mean had reached get zeros.
"""

from collections.abc import Sequence
from typing import Any

import jax.extend.core as jex_core

from lowering import avals
from lowering.passes.fusion.patterns import Group, Search
from lowering.passes.rewriting import as_broadcast, as_reshape


def _repeated(total: jex_core.JaxprEqn, group: Group) -> Sequence[jex_core.JaxprEqn] | None:
    """A broadcast and a reshape in place of a sum over windows with interior padding."""
    pad = group.maker(total.invars[0], "pad")
    if pad is None or not isinstance(pad.invars[1], jex_core.Literal) or pad.invars[1].val != 0:
        return None
    params, config = total.params, pad.params["padding_config"]
    steps = (params[name] for name in ("window_strides", "base_dilation", "window_dilation"))
    is_plain = not any(map(any, params["padding"])) and all(n == 1 for of in steps for n in of)
    sizes = params["window_dimensions"]
    x, result = pad.invars[0], total.outvars[0]
    dims = x.aval.shape
    if not is_plain or 0 in dims or not all(map(_is_spread, config, sizes)):
        return None
    apart: list[Any] = []
    places: list[int] = []
    for dim, size in zip(dims, sizes, strict=True):
        places.append(len(apart))
        apart += [dim] if size == 1 else [dim, size]
    spread = jex_core.Var(x.aval.update(shape=tuple(apart)))
    repeated = jex_core.Var(x.aval.update(shape=tuple(map(_times, dims, sizes))))
    return [
        as_broadcast(total, x, spread, places),
        as_reshape(total, spread, repeated),
        pad.replace(
            invars=[repeated, pad.invars[1]],
            outvars=[result],
            params={
                "padding_config": tuple(
                    (0, high - size + 1, 0) for (_, high, _), size in zip(config, sizes)
                )
            },
        ),
    ]


def _times(dim: Any, size: int) -> Any:
    return dim if size == 1 else dim * size


def _is_spread(config: tuple[Any, Any, int], size: Any) -> bool:
    """Whether each window of a size has exactly one element of an axis that is padded so."""
    low, high, interior = config
    if not avals.is_static((low, high, size)):
        return False
    return interior == low == size - 1 and high >= (0 if size == 1 else size - 1)


SPREADING_SEARCHES: dict[str, Search] = {"reduce_window_sum": _repeated}
