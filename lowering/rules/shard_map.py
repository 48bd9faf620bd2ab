"""Programs for the devices of a mesh."""

import functools
from typing import Any

import jax

from lowering import jax_compat
from lowering.registry import rule
from lowering.rules.shards import on_one_device


@rule("shard_map", keep_constants=True, keys=True)
def shard_map(ctx, *operands, **params):
    """All shards are computed by the one device that runs the graph."""
    avals = tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in ctx.in_avals)
    return ctx.call(_trace(avals, tuple(sorted(params.items()))), *operands)


@functools.lru_cache(maxsize=1024)
def _trace(avals: Any, params: Any) -> Any:
    """The closed jaxpr of a function of the whole operands."""
    no_mesh = jax.sharding.AbstractMesh((), ())
    with jax_compat.enable_x64(), jax.sharding.use_abstract_mesh(no_mesh):
        jaxpr = jax.make_jaxpr(on_one_device(**dict(params)))(*avals)
    return jax_compat.eliminate_dead_code(jaxpr)
