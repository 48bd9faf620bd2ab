"""The arguments of a converted function: pytrees of tensors, arrays and scalars."""

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf
from tensorflow.python.trackable import data_structures

from lowering import avals
from lowering.errors import LoweringError
from lowering.frontend import polymorphic
from lowering.ops import dtypes

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# What TensorFlow's modules make of lists that are their attributes.
_LISTS = (list, data_structures.ListWrapper, data_structures.List)


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What a converted function is called with.

    Attributes:
      tree: the tree structure of `(args, kwargs)`.
      avals: the abstract value of each leaf; dimensions may be symbolic.
      tensors: each leaf as a tensor.
    """

    tree: jax.tree_util.PyTreeDef
    avals: tuple[jax.ShapeDtypeStruct, ...]
    tensors: Sequence[tf.Tensor]

    @property
    def key(self) -> Any:
        """What the trace of a function depends on: equal for arguments that share one."""
        return self.tree, tuple((aval.shape, aval.dtype, aval.weak_type) for aval in self.avals)

    def dimension_values(self) -> dict[str, tf.Tensor]:
        """The value of each dimension variable, as an int32 scalar."""
        return polymorphic.dimension_values([aval.shape for aval in self.avals], self.tensors)


def flatten(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    polymorphic_shapes: Any,
    constraints: Sequence[str],
) -> Arguments:
    """The arguments as JAX takes them.

    Args:
      args: the positional arguments.
      kwargs: the keyword arguments.
      polymorphic_shapes: as for `convert`.
      constraints: constraints on dimension variables.

    Raises:
      TypeError: for a leaf that is no array, or has a dtype that JAX or TensorFlow lacks.
      ValueError: for shapes that do not fit `polymorphic_shapes`.
      LoweringError: for a leaf that is a JAX tracer.
    """
    args, kwargs = plain(tuple(args)), plain(dict(kwargs))
    leaves_with_path, tree = jax.tree_util.tree_flatten_with_path((args, kwargs))
    leaves = [_Argument(_path(path), leaf) for path, leaf in leaves_with_path]
    shapes = polymorphic.symbolic_shapes(args, polymorphic_shapes, constraints, _static_shape)
    shapes += [leaf.static_shape() for leaf in leaves[len(shapes) :]]
    structs = tuple(leaf.aval(shape) for leaf, shape in zip(leaves, shapes, strict=True))
    return Arguments(tree, structs, [leaf.tensor() for leaf in leaves])


def signature(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of `fun` without defaults, which a `tf.function` would pass as tensors."""
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except ValueError:  # Some builtins have no signature.
        parameters = []
    kept = [
        parameter.replace(annotation=parameter.empty)
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in _VARIADIC
    ]
    if len(kept) < len(parameters) or not parameters:
        taken = {parameter.name for parameter in kept}
        for name, kind in zip(("args", "kwargs"), _VARIADIC):
            while name in taken:
                name += "_"
            kept.append(inspect.Parameter(name, kind))
    return inspect.Signature(sorted(kept, key=lambda parameter: parameter.kind))


def plain(tree: Any) -> Any:
    """A pytree without the wrappers that `tf.Module` puts around containers.

    A list, tuple or dictionary assigned to an attribute of a `tf.Module` becomes a container of
    another type, which JAX would take for a leaf.
    """
    if isinstance(tree, data_structures.ListWrapper | list) and type(tree) in _LISTS:
        return [plain(item) for item in tree]
    if isinstance(tree, data_structures._TupleWrapper) or type(tree) is tuple:
        items = [plain(item) for item in tree]
        wrapped: Any = tree
        is_named = hasattr(tree, "_fields")
        return type(wrapped.__wrapped__)(*items) if is_named else tuple(items)
    if isinstance(tree, data_structures._DictWrapper) or type(tree) is dict:
        return {key: plain(value) for key, value in tree.items()}
    return tree


class _Argument:
    """One leaf of the arguments: its place, abstract value and tensor."""

    def __init__(self, path: str, leaf: Any):
        self.path = path
        self.leaf = leaf
        if isinstance(leaf, jax.core.Tracer):
            raise LoweringError(f"argument {path} is a JAX tracer; pass a value of TensorFlow")
        try:
            if isinstance(leaf, tf.Tensor | tf.Variable):
                source = leaf.dtype.base_dtype.as_numpy_dtype
                if source in (object, np.str_, np.bytes_) or leaf.dtype == tf.string:
                    raise TypeError
                self.weak_type = False
            elif isinstance(leaf, bool | int | float | complex | np.generic | np.ndarray):
                source = jax.dtypes.result_type(leaf)
                self.weak_type = not isinstance(leaf, np.generic | np.ndarray | bool)
            elif isinstance(leaf, jax.Array):
                source = leaf.dtype
                self.weak_type = jax.typeof(leaf).weak_type
            else:
                raise TypeError
            self.dtype = source if avals.is_key(source) else jax.dtypes.canonicalize_dtype(source)
            self.tf_dtype = dtypes.to_tf_argument(self.dtype)
        except TypeError as error:
            detail = f": {error}" if str(error) else ""
            kind = getattr(getattr(leaf, "dtype", None), "name", type(leaf).__name__)
            raise TypeError(
                f"argument {path} has type {kind}, which is no JAX array{detail}"
            ) from None

    def static_shape(self) -> tuple[int | None, ...]:
        """Its shape; a ValueError if TensorFlow does not know it."""
        shape = _static_shape(self.leaf)
        if None in shape:
            raise ValueError(
                f"argument {self.path} has the unknown shape {tf.TensorShape(shape)}; "
                "name its dimensions with polymorphic_shapes"
            )
        return shape

    def aval(self, shape: tuple[Any, ...]) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, self.dtype, weak_type=self.weak_type)

    def tensor(self) -> tf.Tensor:
        leaf = self.leaf
        if isinstance(leaf, jax.Array):
            leaf = np.asarray(jax.random.key_data(leaf) if avals.is_key(leaf.dtype) else leaf)
        if isinstance(leaf, tf.Tensor | tf.Variable):
            tensor = tf.convert_to_tensor(leaf)
            return tensor if tensor.dtype == self.tf_dtype else tf.cast(tensor, self.tf_dtype)
        # Not shared like other constants: the caller may change an array after the call.
        return tf.constant(np.asarray(leaf, self.tf_dtype.as_numpy_dtype))


def _static_shape(leaf: Any) -> tuple[int | None, ...]:
    if isinstance(leaf, tf.Tensor | tf.Variable):
        if leaf.shape.rank is None:
            raise ValueError("an argument of unknown rank cannot be lowered")
        return tuple(leaf.shape.as_list())
    return np.shape(leaf)


def _path(path: Sequence[Any]) -> str:
    (position, *rest) = path
    return ("args" if position.idx == 0 else "kwargs") + jax.tree_util.keystr(tuple(rest))
