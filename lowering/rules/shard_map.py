"""Programs for the devices of a mesh, as programs of one device.

What each device does is mapped over the axes of the mesh, as by `jax.vmap`. A value that differs
along an axis gets a leading dimension for it, which holds the shards. A value that is the same
along an axis is kept and computed once. Collectives combine the shards along those dimensions; each
is written in terms of the few collectives that JAX can map.

Where devices take different branches, all branches are computed. A loop takes as many steps as the
device that needs most; the values of the other devices no longer change after their last step.
"""

import functools
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
from jax import lax

from lowering import avals, jax_compat, registry
from lowering.errors import UnsupportedError
from lowering.passes.evaluation import evaluate
from lowering.passes.jaxprs import Jaxpr
from lowering.registry import Trait, decomposition, has_trait
from lowering.targets import TF


@decomposition("shard_map")
def shard_map(*operands, jaxpr, **params):
    """All shards are computed by the one device that runs the graph."""
    return on_one_device(jaxpr=jaxpr, **params)(*operands)


_COLLECTIVES: dict[str, Callable[..., Any]] = {}

# Parameters that say how values are spread over devices.
_SHARDINGS = frozenset({"out_sharding", "sharding"})


def collective(
    *primitives: str, traits: Trait = Trait.NONE
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a JAX function `(*operands, **params)` as what `primitives` do on a device.

    It is mapped over the axes that the parameters name, and may ask for `lax.axis_index`.
    """

    def decorate(fun):
        _COLLECTIVES.update(dict.fromkeys(primitives, fun))
        return registry.decomposition(*primitives, traits=traits)(fun)

    return decorate


def on_one_device(
    *,
    jaxpr: jex_core.Jaxpr,
    mesh: jax.sharding.Mesh | jax.sharding.AbstractMesh,
    in_specs: Sequence[jax.sharding.PartitionSpec],
    out_specs: Sequence[jax.sharding.PartitionSpec],
    newly_manual_axes: Collection[str],
    **_: Any,
) -> Callable[..., list[jax.Array]]:
    """A JAX function that does what the devices of a mesh do.

    Args:
      jaxpr: what each device does.
      mesh: the mesh.
      in_specs: how each operand is split.
      out_specs: how each result is put together; along axes that are not mentioned, the shards of
        a result are the same, and the first is taken.
      newly_manual_axes: the axes of the mesh that this is about.

    Returns:
      A function of the whole operands, which returns the whole results.
    """
    axes = {name: size for name, size in mesh.shape.items() if name in newly_manual_axes}
    in_layouts = [_layout(s, var, axes) for s, var in zip(in_specs, jaxpr.invars, strict=True)]
    out_layouts = [_layout(s, var, axes) for s, var in zip(out_specs, jaxpr.outvars, strict=True)]

    def one(*operands):
        shards = [_operand(x, spec, axes) for x, spec in zip(operands, in_specs, strict=True)]
        results = _evaluate(jaxpr, *shards)
        return [_result(x, spec, axes) for x, spec in zip(results, out_specs, strict=True)]

    def fun(*operands):
        structs = [avals.struct(var.aval) for var in jaxpr.invars]
        mapped = jax.make_jaxpr(one, axis_env=[*axes.items()])(*structs)
        mapped = _map(mapped, axes, in_layouts, out_layouts)
        shards = [
            lax.reshape(x, [axes.get(dim, dim) for dim in layout])
            for x, layout in zip(operands, in_layouts, strict=True)
        ]
        results = jex_core.jaxpr_as_fun(mapped)(*shards)
        return [
            lax.reshape(_first(x, len(layout)), _whole(layout, axes))
            for x, layout in zip(results, out_layouts, strict=True)
        ]

    return fun


# The dimensions of the shards of a value: the size of each, after the names of axes that split it.
Layout = Sequence[Any]


def _map(
    jaxpr: jex_core.ClosedJaxpr,
    axes: dict[str, int],
    in_layouts: Sequence[Layout],
    out_layouts: Sequence[Layout],
) -> jex_core.ClosedJaxpr:
    """Maps what each device does over the axes of the mesh.

    Results that differ along axes that are not in their layouts get more leading dimensions.
    """
    done: list[str] = []
    for name in reversed(axes):
        place = functools.partial(_place, name, done)
        in_places = list(map(place, in_layouts, jaxpr.in_avals))
        out_places = list(map(place, out_layouts, jaxpr.out_avals))
        jaxpr, _ = jax_compat.map_jaxpr(jaxpr, name, axes, in_places, out_places)
        done.append(name)
    return jaxpr


def _layout(spec: Any, var: Any, axes: Mapping[str, int]) -> Layout:
    """The layout of the shards of a value that is split as `spec` says."""
    layout = []
    for entry, dim in itertools.zip_longest(spec.partitions, var.aval.shape):
        names = entry if isinstance(entry, tuple) else (entry,)
        layout += [*(name for name in names if name in axes), dim]
    return layout


def _place(name: str, done: Collection[str], layout: Layout, aval: Any) -> int | None:
    """Which dimension an axis becomes, of a value that has those of the axes in `done` already."""
    if name not in layout:
        return None
    after = layout[layout.index(name) :]
    return aval.ndim - sum(not isinstance(dim, str) or dim in done for dim in after)


def _first(x: jax.Array, ndim: int) -> jax.Array:
    """The first element along all leading dimensions but the last `ndim`."""
    while jnp.ndim(x) > ndim:
        x = lax.index_in_dim(x, 0, keepdims=False)
    return x


def _whole(layout: Layout, axes: Mapping[str, int]) -> list[Any]:
    """The dimensions of a value that has been split."""
    shape, size = [], 1
    for dim in layout:
        size *= axes.get(dim, dim)
        if not isinstance(dim, str):
            shape.append(size)
            size = 1
    return shape


def _operand(x: jax.Array, spec: Any, axes: Mapping[str, int]) -> jax.Array:
    """What this device holds of an operand: of a sum over devices, the first holds all."""
    unreduced = [name for name in axes if name in spec.unreduced]
    if not unreduced or jax_compat.unreduced_kind(spec) != "sum":
        return x
    is_first = sum(lax.axis_index(name) for name in unreduced) == 0
    return lax.select(lax.broadcast(is_first, x.shape), x, lax.full_like(x, 0))


def _result(x: jax.Array, spec: Any, axes: Mapping[str, int]) -> jax.Array:
    """The result of all devices, where `x` is the part of this one."""
    unreduced = tuple(name for name in axes if name in spec.unreduced)
    reductions = {"sum": lax.psum, "max": lax.pmax, "min": lax.pmin}
    return reductions[jax_compat.unreduced_kind(spec)](x, unreduced) if unreduced else x


def _evaluate(jaxpr: Jaxpr, *operands: jax.Array) -> list[jax.Array]:
    """What one device does, in primitives that can be mapped."""
    return evaluate(jaxpr, operands, _bind)


def _bind(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> Any:
    """The results of an equation on one device."""
    name, facts = eqn.primitive.name, registry.facts(eqn.primitive.name)
    if name == "shard_map":
        return on_one_device(**eqn.params)(*operands)
    if name in _COLLECTIVES:
        return _COLLECTIVES[name](*operands, **eqn.params)
    if facts.refusal:
        raise UnsupportedError(f"{name} at {jax_compat.source_line(eqn)}: {facts.refusal}")
    if facts.called is not None:
        called, operands = facts.called(*operands, **eqn.params)
        return _evaluate(called, *operands)
    if Trait.NOT_MAPPED in facts.traits and (found := registry.lookup(name, TF)):
        return found.fun(*operands, **eqn.params)
    if Trait.PLACEMENT in facts.traits:
        return operands[0]
    params = {key: None if key in _SHARDINGS else value for key, value in eqn.params.items()}
    if Trait.CONTROL_FLOW in facts.traits:
        params = {key: _with_mappable_jaxprs(value) for key, value in params.items()}
    bind = functools.partial(eqn.primitive.bind, **eqn.primitive.get_bind_params(params))
    if operands and _is_sequential(eqn):
        bind = jax.custom_batching.sequential_vmap(bind)
    return bind(*operands)


def _with_mappable_jaxprs(value: Any) -> Any:
    """A parameter, with each jaxpr in primitives that can be mapped."""
    if isinstance(value, jex_core.ClosedJaxpr):
        return jax.make_jaxpr(functools.partial(_evaluate, value))(
            *map(avals.struct, value.in_avals)
        )
    if type(value) is tuple:
        return tuple(map(_with_mappable_jaxprs, value))
    return value


def _is_sequential(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation has to be run for one device after the other.

    With the keys of XLA's generators, JAX maps random bits by using the first of the keys for all.
    """
    name = eqn.primitive.name
    has_keys_of_xla = any(
        avals.is_key(var.aval.dtype) and "rbg" in jax_compat.key_impl(var.aval.dtype).name
        for var in eqn.invars
    )
    return (
        has_trait(name, Trait.PER_DEVICE)
        or (name.startswith("random_") and has_keys_of_xla)
        or not jax_compat.can_be_mapped(eqn.primitive)
    )
