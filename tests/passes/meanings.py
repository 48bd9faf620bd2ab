"""What the primitives mean that passes introduce, each as a function of JAX; it runs their jaxprs.

Passes tell some primitives of JAX more than JAX knows; what that means stands here, too.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
from jax import lax

from lowering.narrow_formats import width

_REDUCTIONS = {
    "reduce_sum": jnp.sum, "reduce_max": jnp.max, "reduce_min": jnp.min, "reduce_prod": jnp.prod
}  # fmt: skip


def _batch_norm(x, mean, variance, scale, offset, epsilon, convolution=None):
    return (x - mean) * (lax.rsqrt(variance + epsilon) * scale) + offset


def _window_mean(x, *, window_dimensions, **params):
    total = lax.reduce_window_sum_p.bind(x, window_dimensions=window_dimensions, **params)
    return total / math.prod(window_dimensions)


def _window_mean_of_present(x, **window):
    total = functools.partial(lax.reduce_window_sum_p.bind, **window)
    return total(x) / total(jnp.ones_like(x))


def _take(x, index, *, axis, batch_dims, wraps, clips, fill_value):
    if batch_dims:
        take = functools.partial(
            _take,
            axis=axis - 1,
            batch_dims=batch_dims - 1,
            wraps=wraps,
            clips=clips,
            fill_value=fill_value,
        )
        return jax.vmap(take)(jnp.asarray(x), jnp.asarray(index))
    size = x.shape[axis]
    place = jnp.where(index < 0, index + size, index) if wraps else index
    inside = jnp.clip(place, 0, size - 1) if clips else place
    rows = jnp.take(jnp.asarray(x), inside, axis, mode="clip")
    if fill_value is None:
        return rows
    others = [1] * (rows.ndim - axis - index.ndim)
    return jnp.where((inside == place).reshape(*index.shape, *others), rows, fill_value)


def _one_hot(index, *, depth, dtype):
    return (index[..., None] == jnp.arange(depth, dtype=index.dtype)).astype(dtype)


def _mirror_pad(x, *, paddings, repeats_ends):
    return jnp.pad(x, paddings, "symmetric" if repeats_ends else "reflect")


def _depth_to_space(x, *, block):
    batch, rows, columns, depth = x.shape
    x = x.reshape(batch, rows, columns, block, block, -1).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(batch, rows * block, columns * block, depth // block**2)


def _space_to_depth(x, *, block):
    batch, rows, columns, depth = x.shape
    x = x.reshape(batch, rows // block, block, columns // block, block, depth)
    x = x.transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(batch, rows // block, columns // block, depth * block**2)


def _resize_images(x, *, size, method):
    shape = x.shape[0], *size, x.shape[3]
    return jax.image.resize(x, shape, method, antialias=False)


def _slice_and_squeeze(x, *, start_indices, limit_indices, dimensions):
    return lax.squeeze(lax.slice(x, start_indices, limit_indices), dimensions)


MEANINGS: Mapping[str, Callable[..., Any]] = {
    "batch_norm": _batch_norm,
    "depth_to_space": _depth_to_space,
    "elu": jax.nn.elu,
    "scaled_elu": jax.nn.elu,
    "flat_call": lambda *args, jaxpr, flattened: jex_core.jaxpr_as_fun(jaxpr)(*args),
    "fit": lambda x, *, dtype, storage: x.astype(dtype).astype(storage),
    "floor_divide": jnp.floor_divide,
    "floor_mod": jnp.remainder,
    "from_bits": lambda bits, *, dtype, storage: lax.bitcast_convert_type(
        bits.astype(f"uint{width(dtype)}"), dtype
    ).astype(storage),
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "leaky_relu": jax.nn.leaky_relu,
    "log_softmax": jax.nn.log_softmax,
    "mirror_pad": _mirror_pad,
    "one_hot": _one_hot,
    "reduce_keeping_axes": lambda x, *, reduction, axes: _REDUCTIONS[reduction](
        x, axes, keepdims=True
    ),
    "reduce_mean": lambda x, *, axes, keepdims: jnp.mean(x, axes, keepdims=keepdims),
    "reduce_window_mean": _window_mean,
    "reduce_window_mean_of_present": _window_mean_of_present,
    "relu6": jax.nn.relu6,
    "resize_images": _resize_images,
    "rsqrt_of_positive": lax.rsqrt,
    "search": lambda x, y, *, side, dtype: jnp.searchsorted(x, y, side=side).astype(dtype),
    "size_of_parts": jnp.hypot,
    "slice_and_squeeze": _slice_and_squeeze,
    "softmax": jax.nn.softmax,
    "softplus": jax.nn.softplus,
    "space_to_depth": _space_to_depth,
    "squared_difference": lambda x, y: (x - y) ** 2,
    "take": _take,
    "to_bits": lambda x, *, dtype: lax.bitcast_convert_type(
        x.astype(dtype), f"uint{width(dtype)}"
    ).astype(np.uint8),
    "widen": lambda x, *, storage: x.astype(storage),
}


def known_to_jax(eqn: jex_core.JaxprEqn) -> tuple[jex_core.JaxprEqn, tuple[int, ...] | None]:
    """An equation without what passes tell it beside JAX, and the order of the axes that it gets.

    `dot_general` has a `permutation` of its result, and a maximum over windows the mark of a
    rectifier before it.
    """
    if not {"permutation", "of_rectifier"} & eqn.params.keys() or eqn.primitive.name in _MOVES:
        return eqn, None
    params = {k: v for k, v in eqn.params.items() if k not in ("permutation", "of_rectifier")}
    order = eqn.params.get("permutation")
    if order is None:
        return eqn.replace(params=params), None
    (outvar,) = eqn.outvars
    shape = tuple(outvar.aval.shape[i] for i in np.argsort(order))
    unordered = jex_core.Var(outvar.aval.update(shape=shape))
    return eqn.replace(params=params, outvars=[unordered]), tuple(order)


# In these of JAX a permutation is JAX's own.
_MOVES = ("transpose",)


def run(jaxpr: Any, *args: Any) -> list[Any]:
    """The results of a jaxpr that passes have made."""
    env = dict(zip(jaxpr.constvars, getattr(jaxpr, "consts", ()), strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))

    def read(atoms: Sequence[Any]) -> list[Any]:
        return [x.val if isinstance(x, jex_core.Literal) else env[x] for x in atoms]

    for eqn in jaxpr.eqns:
        env.update(zip(eqn.outvars, _results(eqn, read(eqn.invars)), strict=True))
    return read(jaxpr.outvars)


def _results(eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> Sequence[Any]:
    known, order = known_to_jax(eqn)
    meaning = MEANINGS.get(known.primitive.name, known.primitive.bind)
    params = known.primitive.get_bind_params(known.params)
    results = meaning(*operands, **params)
    if order is not None:
        results = lax.transpose(results, order)
    return results if known.primitive.multiple_results else [results]


def assert_means(jaxpr, fun, *args, **tolerance):
    """Checks that what a jaxpr means is what JAX computes."""
    for x, y in zip(run(jaxpr, *args), jax.tree.leaves(jax.jit(fun)(*args)), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        np.testing.assert_allclose(x, y, **(tolerance or {"rtol": 1e-5, "atol": 1e-6}))
