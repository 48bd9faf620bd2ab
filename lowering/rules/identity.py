"""Primitives that return their operands, or nothing."""

import jax

from lowering.registry import Trait, rule


@rule("copy", "stop_gradient", held=True, traits=Trait.ELEMENTWISE | Trait.SELECTS)
@rule("copy_p", "name", "stage", "pin", "unpin", held=True, traits=Trait.SELECTS)
def identity(ctx, x, **_):
    return x


@rule("multiple_of")
def multiple_of(ctx, x, **_):
    """What it promises of its operand is of no use here."""
    return x


@rule("to_edtype", "from_edtype", held=True)
def extended(ctx, x, **_):
    """An array of an extended dtype is held as what represents it."""
    return x


@rule("tie", held=True)
def tie(ctx, x, y):
    """The second operand, which JAX orders after the first."""
    return y


@rule("optimization_barrier", traits=Trait.SELECTS)
def optimization_barrier(ctx, *operands):
    return operands


@rule(
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "sharding_constraint",
    "layout_constraint",
    "reshard",
    "relayout",
    "with_memory_space_constraint",
    traits=Trait.PLACEMENT | Trait.SELECTS,
)
def placement(ctx, x, **_):
    """Where and how a value lies in memory is TensorFlow's to choose."""
    return x


@rule("device_put", traits=Trait.SELECTS)
def device_put(ctx, *operands, **_):
    """As `placement`."""
    return operands


@rule("dce_sink", held=True)
def dce_sink(ctx, x, **_):
    """What it keeps alive has no effect that could be seen."""
    return []


@rule("inspect_sharding", held=True)
def inspect_sharding(ctx, x, *, callback):
    """The program is for one device, whichever that is; JAX too tells of it when it compiles."""
    callback(jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    return []
