"""Functions on meshes of the virtual devices that `harnesses` makes JAX have."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType

from lowering import jax_compat


@functools.cache
def mesh(axis_type: AxisType = AxisType.Auto, **axes: int) -> jax.sharding.Mesh:
    """A mesh of the first devices, with axes of the given type, names and sizes."""
    sizes = tuple(axes.values())
    devices = np.array(jax.devices()[: np.prod(sizes)]).reshape(sizes)
    return jax.sharding.Mesh(devices, tuple(axes), (axis_type,) * len(axes))


def on_mesh(
    fun: Callable[..., Any], in_specs: Any, out_specs: Any, *, x: int = 2, y: int = 4, **params: Any
) -> Callable[..., Any]:
    """A function of whole arrays that runs `fun` on each device.

    Args:
      fun: a function of shards.
      in_specs: how the arguments are split along the axes "x" and "y" of the mesh.
      out_specs: how the results are.
      x: the size of the first axis.
      y: the size of the second axis.
      **params: further arguments of `jax.shard_map`.
    """

    def run(*args):
        # The mesh is made late: harnesses are also listed where JAX has no devices yet.
        on_devices = jax.shard_map(
            fun, mesh=mesh(x=x, y=y), in_specs=in_specs, out_specs=out_specs, **params
        )
        return on_devices(*args)

    return run


def bind(primitive: str, **params: Any) -> Callable[[jax.Array], jax.Array]:
    """A function that binds a primitive for which JAX has no public function."""
    return lambda x: jax_compat.cpu_primitive(primitive).bind(x, **params)
