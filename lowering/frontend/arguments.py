"""The arguments of a converted function: pytrees of tensors, arrays and scalars."""

import dataclasses
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
import tensorflow as tf

from lowering import avals, callables
from lowering.errors import TransformationError
from lowering.frontend import checks, containers, plans, polymorphic, refused
from lowering.ops import dtypes

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)

# The keys from the root of a pytree to a leaf.
Path = Sequence[Any]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What a converted function is called with.

    Attributes:
      tree: the tree structure of `(args, kwargs)`.
      avals: the abstract value of each leaf; dimensions may be symbolic.
      tensors: each leaf as a tensor.
      sizes: the values of dimension variables, and what is to be checked of them; None if there
        are no specifications.
      paths: finds the path of each leaf in `(args, kwargs)`.
    """

    tree: jax.tree_util.PyTreeDef
    avals: tuple[jax.ShapeDtypeStruct, ...]
    tensors: Sequence[tf.Tensor]
    sizes: checks.Sizes | None
    paths: Callable[[], Sequence[Path]]

    @property
    def key(self) -> Any:
        """The key of a trace; arguments with equal keys share one."""
        # Symbolic dimensions of different calls are never equal, but they are written alike.
        return self.tree, tuple(
            (
                tuple(dim if isinstance(dim, int) else str(dim) for dim in aval.shape),
                aval.dtype,
                aval.weak_type,
            )
            for aval in self.avals
        )

    def with_shapes(self, shapes: Sequence[tuple[Any, ...]]) -> "Arguments":
        """The same arguments with other shapes: symbolic dimensions of the same names."""
        structs = tuple(
            jax.ShapeDtypeStruct(shape, aval.dtype, weak_type=aval.weak_type)
            for shape, aval in zip(shapes, self.avals, strict=True)
        )
        return dataclasses.replace(self, avals=structs)


def flatten(
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    polymorphic_shapes: Any,
    constraints: Sequence[str],
    check_shapes: bool = True,
    fun: Callable[..., Any] | None = None,
) -> Arguments:
    """The arguments as JAX takes them.

    Args:
      args: the positional arguments.
      kwargs: the keyword arguments.
      polymorphic_shapes: as for `convert`.
      constraints: constraints on dimension variables.
      check_shapes: as for `convert`.
      fun: the function that they are for; messages have the names of its parameters.

    Raises:
      TypeError: for a leaf that is no array, or has a dtype that JAX or TensorFlow lacks.
      ValueError: for specifications that do not fit the structure of the arguments.
      ShapeError: for sizes that do not fit the specifications.
      LoweringError: for a leaf that is a JAX tracer.
    """
    args, kwargs = containers.plain((tuple(args), dict(kwargs)))
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))

    def paths() -> list[Path]:
        return [path for path, _ in jax.tree_util.tree_flatten_with_path((args, kwargs))[0]]

    def name(position: int) -> str:
        path = paths()[position]
        parameter = "" if fun is None else _parameter(fun, path)
        return place(path) + (f", which is {parameter}," if parameter else "")

    taken = [_Argument(leaf, functools.partial(name, i)) for i, leaf in enumerate(leaves)]
    static = [_static_shape(leaf) for leaf in leaves]
    if polymorphic_shapes is None and all(s is not None and None not in s for s in static):
        structs = tuple(
            leaf.aval(s) for leaf, s in zip(taken, static, strict=True) if s is not None
        )
        return Arguments(tree, structs, [leaf.tensor() for leaf in taken], None, paths)
    named = list(zip(map(place, paths()), static, strict=True))
    shapes, scope = polymorphic.symbolic_shapes(args, polymorphic_shapes, constraints, named)
    tensors = [
        checks.with_rank(leaf.tensor(), argument, check_shapes)
        for leaf, argument in zip(taken, shapes, strict=True)
    ]
    sizes = checks.Sizes(plans.plan(shapes, scope, tuple(constraints)), tensors)
    structs = tuple(leaf.aval(a.shape) for leaf, a in zip(taken, shapes, strict=True))
    return Arguments(tree, structs, tensors, sizes, paths)


def dtype_of(value: Any) -> tf.DType:
    """The dtype of the tensor that a value is taken as.

    Raises:
      TypeError: if it is no array, or has a dtype that JAX or TensorFlow lacks.
    """
    return _Argument(value, lambda: "val").tf_dtype


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


class _Argument:
    """One leaf of the arguments: its place, abstract value and tensor."""

    def __init__(self, leaf: Any, name: Callable[[], str]):
        if hasattr(leaf, "__tf_tensor__") and not isinstance(leaf, tf.Tensor | tf.Variable):
            leaf = tf.convert_to_tensor(leaf)  # Such as a variable of Keras.
        self.leaf = leaf
        if isinstance(leaf, jax.core.Tracer):
            raise TransformationError(
                f"argument {name()} is a JAX tracer; pass a value of TensorFlow"
            )
        try:
            if refused.is_refused(leaf):
                raise TypeError
            if isinstance(leaf, tf.Tensor | tf.Variable):
                given = leaf.dtype.base_dtype
                if given == tf.string or given.is_quantized or not given.is_numpy_compatible:
                    raise TypeError
                source = given.as_numpy_dtype
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
        except (TypeError, ValueError) as error:
            detail = f": {error}" if str(error) else ""
            raise TypeError(
                f"argument {name()} has type {refused.kind(leaf)}, which is no JAX array"
                f"{detail}{refused.instead(leaf)}"
            ) from None

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
        if self.dtype == dtypes.FLOAT0:
            return tf.zeros(np.shape(leaf), self.tf_dtype)
        return tf.constant(np.asarray(leaf, self.tf_dtype.as_numpy_dtype))


def _static_shape(leaf: Any) -> polymorphic.StaticShape:
    if isinstance(leaf, tf.Tensor | tf.Variable):
        return None if leaf.shape.rank is None else tuple(leaf.shape.as_list())
    return np.shape(leaf)


def _parameter(fun: Callable[..., Any], path: Path) -> str:
    """The parameter of a function that a leaf is given for; "" if that is not known."""
    group, first, *_ = path
    taken = callables.positional(fun)
    if group.idx == 1 or first.idx >= len(taken):
        return ""
    return f"{taken[first.idx]} of {callables.name(fun)}"


def place(path: Path) -> str:
    """A leaf of `(args, kwargs)`, as messages name it: `args[0]['x']`."""
    (position, *rest) = path
    return ("args" if position.idx == 0 else "kwargs") + jax.tree_util.keystr(tuple(rest))
