"""Questions about abstract values, dtypes and dimensions that need no TensorFlow."""

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import ml_dtypes
import numpy as np

from lowering import jax_compat

# Floats of 16 bits.
HALF_FLOATS = frozenset(map(np.dtype, (np.float16, ml_dtypes.bfloat16)))


@functools.cache
def is_key(dtype: Any) -> bool:
    """Whether a dtype is one of JAX's typed PRNG keys."""
    return jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)


def is_complex(dtype: Any) -> bool:
    """Whether a dtype is one of complex numbers."""
    return dtype is not None and jax.dtypes.issubdtype(dtype, np.complexfloating)


def real_dtype(dtype: Any) -> np.dtype:
    """The dtype of the real and the imaginary parts of complex numbers."""
    return np.finfo(dtype).dtype


def with_dtypes(
    params: Mapping[str, Any], change: Callable[[np.dtype], np.dtype]
) -> dict[str, Any]:
    """The parameters of an equation with other dtypes; what is no dtype stays as it is."""

    def changed(value: Any) -> Any:
        is_class = isinstance(value, type) and issubclass(value, np.generic)
        return change(np.dtype(value)) if is_class or isinstance(value, np.dtype) else value

    return {name: changed(value) for name, value in params.items()}


def itemsize(dtype: Any) -> int:
    """The bytes of an element; PRNG keys have at most 16."""
    return 16 if is_key(dtype) else np.dtype(dtype).itemsize


def physical_shape(aval: Any) -> tuple[Any, ...]:
    """The shape of the tensor that has a value: that of key data for keys."""
    return (*aval.shape, *jax_compat.key_shape(aval.dtype)) if is_key(aval.dtype) else aval.shape


def physical_aval(aval: Any) -> Any:
    """The abstract value of the data of keys; any other abstract value itself."""
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
