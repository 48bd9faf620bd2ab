"""Questions about abstract values, dtypes and dimensions that need no TensorFlow."""

import contextlib
import contextvars
import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from lowering import jax_compat


@functools.cache
def is_key(dtype: Any) -> bool:
    """Whether a dtype is one of JAX's typed PRNG keys."""
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


# Whether complex numbers are held as pairs of real ones.
_HAS_PAIRS: contextvars.ContextVar[bool] = contextvars.ContextVar("has pairs", default=False)


@contextlib.contextmanager
def holding_pairs(has_pairs: bool) -> Iterator[None]:
    """A context in which tensors hold complex numbers as pairs, or do not."""
    token = _HAS_PAIRS.set(has_pairs)
    try:
        yield
    finally:
        _HAS_PAIRS.reset(token)


def is_pair(dtype: Any) -> bool:
    """Whether tensors hold the numbers of a dtype as pairs, in a last dimension of two."""
    return _HAS_PAIRS.get() and jax.dtypes.issubdtype(dtype, np.complexfloating)


def itemsize(dtype: Any) -> int:
    """The bytes of an element; PRNG keys have at most 16."""
    return 16 if is_key(dtype) else np.dtype(dtype).itemsize


def physical_shape(aval: Any) -> tuple[Any, ...]:
    """The shape of the tensor that holds a value.

    Keys have a dimension for their words, complex numbers that are held as pairs one for the parts.
    """
    if is_pair(aval.dtype):
        return (*aval.shape, 2)
    return (*aval.shape, *jax_compat.key_shape(aval.dtype)) if is_key(aval.dtype) else aval.shape


def physical_aval(aval: Any) -> Any:
    """The abstract value of the words of keys; any other abstract value itself."""
    if not is_key(aval.dtype):
        return aval
    return jax.core.ShapedArray(physical_shape(aval), np.dtype(np.uint32))


def struct(aval: Any) -> jax.ShapeDtypeStruct:
    """The shape and dtype of an abstract value, as the tracing functions of JAX take them."""
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=getattr(aval, "weak_type", False))


def static_shape(dims: Sequence[Any]) -> list[int | None]:
    """The dimensions as TensorFlow's static shape, with None for symbolic ones."""
    return [dim if isinstance(dim, int) else None for dim in dims]


def is_static(dims: Sequence[Any]) -> bool:
    """Whether all dimensions are known."""
    return all(isinstance(dim, int) for dim in dims)


def is_at_most(dim: Any, limit: Any) -> bool:
    """Whether a size is known not to exceed a limit."""
    try:
        return bool(dim <= limit)
    except jax.errors.InconclusiveDimensionOperation:
        return False


def is_at_least(dim: Any, limit: int) -> bool:
    """Whether a size is known to reach a limit."""
    try:
        return bool(dim >= limit)
    except jax.errors.InconclusiveDimensionOperation:
        return False


_OF_INTEGERS: Mapping[str, Callable[..., int]] = {
    "add": operator.add,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


def known_size(dim: Any, sizes: Mapping[str, int]) -> int:
    """The size of a dimension for given sizes of the dimension variables, by name."""
    return int(jax_compat.evaluate_dim(dim, sizes, _OF_INTEGERS))
