"""Primitives that return their operands unchanged, and primitives without results."""

import functools

import jax
import numpy as np
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.experimental import multihost_utils, primal_tangent_dtype
from jax.experimental.layout import Layout, with_layout_constraint
from jax.extend.core import primitives
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from harnesses.arguments import name, specials
from harnesses.axes import every_axis, symbolic
from harnesses.harness import Harness, harnesses
from lowering import jax_compat


@harnesses
@symbolic(every_axis)
def identity():
    for dtype in (np.bool_, np.int32, np.float32, np.complex128):
        x = specials(dtype)
        yield Harness("copy", name(dtype), primitives.copy_p.bind, (x,))
        yield Harness("name", name(dtype), functools.partial(checkpoint_name, name="x"), (x,))
        yield Harness("stop_gradient", name(dtype), lax.stop_gradient, (x,))
        fun = lambda x: lax.optimization_barrier((x, x[::-1]))  # noqa: E731
        yield Harness("optimization_barrier", name(dtype), fun, (x,))


@harnesses
@symbolic(every_axis)
def without_public_function_or_result():
    """Yields harnesses of primitives without a public function, and of some without a result."""
    x = specials(np.float32)
    bind = lambda primitive: jax_compat.cpu_primitive(primitive).bind  # noqa: E731
    yield Harness("tie", "float32", lambda x: bind("tie")(x + 1, x), (x,))
    yield Harness("stage", "float32", lambda x: bind("stage")(x) + 1, (x,))
    extended = primal_tangent_dtype(np.dtype(np.float32), np.dtype(np.float16))
    to_extended = lambda x: lax.convert_element_type(x, extended)  # noqa: E731
    from_extended = lambda x: lax.convert_element_type(x, np.float32)  # noqa: E731
    yield Harness(
        "to_edtype", "primal_tangent", lambda x: from_extended(to_extended(x)[::-1]) + 1, (x,)
    )
    yield Harness(
        "from_edtype", "primal_tangent", lambda x: from_extended(to_extended(x + 1)), (x,)
    )
    yield Harness(
        "from_edtype", "known", lambda x: from_extended(to_extended(np.float32(2))) * x, (x,)
    )

    def sink(x):
        lax.dce_sink(x)
        return x + 1

    def inspect(x):
        jax.debug.inspect_array_sharding(x, callback=lambda sharding: None)
        return x + 1

    yield Harness("dce_sink", "float32", sink, (x,))
    yield Harness("inspect_sharding", "float32", inspect, (x,))


@harnesses
@symbolic(every_axis)
def placement():
    device = jax.devices("cpu")[0]
    replicated = NamedSharding(Mesh([device], ("x",)), PartitionSpec("x"))
    x = np.arange(4, dtype=np.float32)
    yield Harness("device_put", "device", lambda x: jax.device_put(x, device) + 1, (x,))
    yield Harness("device_put", "tree", lambda x: jax.device_put({"a": x, "b": x[0]}), (x,))
    fun = lambda x: lax.with_sharding_constraint(x, replicated) + 1  # noqa: E731
    yield Harness("sharding_constraint", "one_device", fun, (x,))
    by_rows = Layout(major_to_minor=(1, 0))
    fun = lambda x: with_layout_constraint(x, by_rows) + 1  # noqa: E731
    yield Harness("layout_constraint", "by_rows", fun, (np.ones((2, 3), np.float32),))
    mesh = Mesh([device], ("x",), axis_types=(AxisType.Explicit,))
    explicit = NamedSharding(mesh, PartitionSpec("x"))
    yield Harness("reshard", "one_device", lambda x: jax.sharding.reshard(x, explicit), (x,))
    for convert in (
        multihost_utils.host_local_array_to_global_array,
        multihost_utils.global_array_to_host_local_array,
    ):
        fun = functools.partial(convert, global_mesh=mesh, pspecs=PartitionSpec("x"))
        yield Harness(convert.__name__, "one_process", fun, (x,))
    constraint = jax_compat.cpu_primitive("with_memory_space_constraint")
    if constraint is not None:
        fun = functools.partial(constraint.bind, memory_space=jax.memory.Space.Device)
        yield Harness("with_memory_space_constraint", "device", fun, (x,))
