"""Primitives that return their operands, or nothing."""

import jax

from lowering.registry import Trait, rule


@rule("copy", "stop_gradient", in_storage=True, traits=Trait.ELEMENTWISE | Trait.SELECTS)
@rule("copy_p", "name", "stage", "pin", "unpin", in_storage=True, traits=Trait.SELECTS)
@rule("to_edtype", "from_edtype", in_storage=True)
@rule("multiple_of")
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
def identity(ctx, x, **_):
    """TensorFlow chooses devices and layouts itself, and holds extended dtypes as plain ones."""
    return x


@rule("optimization_barrier", "device_put", traits=Trait.SELECTS)
def identities(ctx, *operands, **_):
    return operands


@rule("tie", in_storage=True, traits=Trait.SELECTS)
def tie(ctx, x, y):
    """The second operand; that it depends on the first matters to JAX's own compiler only."""
    return y


@rule("dce_sink", in_storage=True)
def dce_sink(ctx, x, **_):
    """No results; it only keeps JAX from removing the computation of `x`."""
    return []


@rule("inspect_sharding", in_storage=True)
def inspect_sharding(ctx, x, *, callback):
    """Calls the callback once, at lowering time, as JAX does when it compiles."""
    callback(jax.sharding.SingleDeviceSharding(jax.devices()[0]))
    return []
