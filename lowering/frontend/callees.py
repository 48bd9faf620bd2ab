"""TensorFlow functions that a JAX program calls, on flat lists of tensors.

The function of the user is the first kind. Its derivatives are functions of TensorFlow as well, and
so is what `jax.vmap` makes of it, so each of them can be differentiated and mapped again; see
`callee_transforms`.
"""

import contextlib
import contextvars
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import jax
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, targets
from lowering.caches import Bounded
from lowering.frontend import containers, refused
from lowering.ops import dtypes
from lowering.ops.registration import recording

# How many graphs are kept of a function. They are freed with it.
_GRAPHS = 256


class ResultError(ValueError):
    """A function returns something that is no array, or is not what was declared."""


class Callee(Protocol):
    """A function of flat tensors that returns flat tensors.

    Attributes:
      root: the function of the user.
      arity: how many operands it has.
    """

    @property
    def root(self) -> "Function": ...

    @property
    def arity(self) -> int: ...

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]: ...


class Origin:
    """What all calls of one function of the user share.

    Attributes:
      fun: the function.
      name: its name.
      graphs: the graphs that were made of it and of its derivatives.
      has_warned: whether the user knows that it runs by a callback.
    """

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
        self.name: str = getattr(fun, "__name__", type(fun).__name__)
        self.graphs = Bounded(_GRAPHS)
        self.has_warned = False


@dataclasses.dataclass(frozen=True)
class Declared:
    """What the user says of the results of a function.

    Attributes:
      tree: their structure.
      avals: their shapes and dtypes; dimensions may be symbolic.
    """

    tree: Any
    avals: tuple[jax.core.ShapedArray, ...]


@dataclasses.dataclass(frozen=True)
class Function:
    """The function of the user, on the leaves of its arguments.

    Attributes:
      origin: the function.
      tree: the structure of its arguments, as `(args, kwargs)`.
      settings: the settings of JAX, by name, under which it is called. 64-bit results are taken as
        32-bit ones unless these have it otherwise.
      declared: what the user says of its results; None for nothing.
    """

    origin: Origin
    tree: Any
    settings: tuple[tuple[str, Any], ...]
    declared: Declared | None = None

    def __repr__(self) -> str:
        return self.origin.name

    @property
    def root(self) -> "Function":
        return self

    @property
    def arity(self) -> int:
        return self.tree.num_leaves

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        """The leaves of the results on the leaves of the arguments.

        Raises:
          ResultError: for a result that JAX cannot take, or that is not what was declared.
        """
        args, kwargs = jax.tree_util.tree_unflatten(self.tree, operands)
        settings = jax_compat.under(dict(self.settings))
        # The function may have tapes of its own.
        with jax_compat.outside_of_tracing(), settings, recording():
            returned = self.origin.fun(*args, **kwargs)
            if isinstance(returned, tf.Operation):
                returned = []  # What TensorFlow returns for a function without results in a graph.
            leaves, tree = jax.tree_util.tree_flatten(containers.plain(returned))
            results = [_result(self.origin.name, i, x) for i, x in enumerate(leaves)]
        function, structures = _OBSERVED.get()
        if function == self:
            structures.append(tree)
        return results if self.declared is None else self._checked(self.declared, results, tree)

    def _checked(self, declared: Declared, results: list[tf.Tensor], tree: Any) -> list[tf.Tensor]:
        """Results, if they are those that were declared."""
        if tree != declared.tree:
            raise ResultError(
                f"the results of {self.origin.name} have the structure {tree}, but "
                f"output_shape_dtype has {declared.tree}"
            )
        checked = []
        for i, (y, aval) in enumerate(zip(results, declared.avals, strict=True)):
            static = tf.TensorShape(avals.static_shape(aval.shape))
            has_dtype = y.dtype == dtypes.to_tf_argument(aval.dtype)
            if not (has_dtype and static.is_compatible_with(y.shape)):
                raise ResultError(
                    f"result {i} of {self.origin.name} is {y.dtype.name}{y.shape}, but "
                    f"output_shape_dtype says {aval.dtype.name}{static}"
                )
            checked.append(_of_shape(y, static))
        return checked


# The function whose results are observed, and the structures of what it has returned.
_OBSERVED: contextvars.ContextVar[tuple[Function | None, list[Any]]] = contextvars.ContextVar(
    "observed", default=(None, [])
)


@contextlib.contextmanager
def observed(function: Function) -> Iterator[list[Any]]:
    """A context that collects the structures of the results of a function's calls within it."""
    structures: list[Any] = []
    token = _OBSERVED.set((function, structures))
    try:
        yield structures
    finally:
        _OBSERVED.reset(token)


def _result(name: str, position: int, leaf: Any) -> tf.Tensor:
    """A leaf of the results of a function, as a tensor of a dtype that JAX has."""
    try:
        if isinstance(leaf, np.ma.MaskedArray):
            raise TypeError("a tensor has no mask")
        tensor = tf.convert_to_tensor(leaf)
        dtype = jax.dtypes.canonicalize_dtype(_numpy_dtype(tensor.dtype))
    except (TypeError, ValueError) as error:
        detail = (
            refused.instead(leaf) if refused.is_refused(leaf) else "; return numbers or booleans"
        )
        raise ResultError(
            f"result {position} of {name} has type {refused.kind(leaf)}, which is no JAX array"
            f"{detail}"
        ) from error
    return tf.cast(tensor, dtypes.to_tf_argument(dtype)) if dtype != tensor.dtype else tensor


def _of_shape(y: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """A tensor with a declared shape, some sizes of which may be unknown.

    A graph checks sizes when it runs that are not known before, unless its runtime has no op for
    such a check.
    """
    if y.shape.rank is not None and all(
        size is None or size == known for size, known in zip(shape, y.shape, strict=True)
    ):
        return y
    if targets.current().has_tensorflow_kernels:
        return tf.ensure_shape(y, shape)
    y.set_shape(shape)
    return y


def _numpy_dtype(dtype: tf.DType) -> np.dtype:
    """The NumPy dtype of a tensor of numbers or booleans."""
    if dtype.is_quantized or dtype in (tf.string, tf.resource, tf.variant):
        raise TypeError(f"{dtype.name} is no dtype of JAX")
    return np.dtype(dtype.as_numpy_dtype)
