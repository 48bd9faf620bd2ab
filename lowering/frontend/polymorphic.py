"""`polymorphic_shapes`: which dimensions of the arguments are symbolic, and their values."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import tensorflow as tf

from lowering import jax_compat


def symbolic_shapes(
    args: Sequence[Any],
    polymorphic_shapes: Any,
    constraints: Sequence[str],
    leaf_shape: Callable[[Any], tuple[int | None, ...]],
) -> list[tuple[Any, ...]]:
    """The shape of each leaf of the positional arguments, with symbolic dimensions.

    Args:
      args: the positional arguments, as pytrees.
      polymorphic_shapes: a pytree prefix of `args` with shape specifications such as "(b, 28, _)",
        or None where the shape is that of the argument.
      constraints: constraints on the dimension variables, such as "b >= 4".
      leaf_shape: the shape of a leaf, with None for dimensions unknown to TensorFlow.

    Raises:
      ValueError: if a specification does not fit its argument, or is missing for a dimension that
        TensorFlow does not know.
    """
    specs = _broadcast_prefix(polymorphic_shapes, tuple(args))
    scope = jax.export.SymbolicScope(tuple(constraints))
    shapes: list[tuple[Any, ...]] = []
    for (path, leaf), spec in zip(
        jax.tree_util.tree_leaves_with_path(tuple(args)), specs, strict=True
    ):
        like = leaf_shape(leaf)
        name = f"args{jax.tree_util.keystr(path)}"
        if spec is None:
            if None in like:
                raise ValueError(
                    f"{name} has the unknown shape {tf.TensorShape(like)}; "
                    "name its dimensions with polymorphic_shapes"
                )
            shapes.append(like)
            continue
        try:
            shape = jax.export.symbolic_shape(spec, like=like, scope=scope)
            if len(shape) != len(like):
                raise ValueError(f"it has {len(like)} dimensions, not {len(shape)}")
        except ValueError as error:
            raise ValueError(f"polymorphic_shapes {spec!r} for {name}: {error}") from error
        shapes.append(tuple(shape))
    return shapes


def _broadcast_prefix(polymorphic_shapes: Any, args: tuple[Any, ...]) -> list[str | None]:
    """The specification of each leaf of `args`."""
    is_single = polymorphic_shapes is None or isinstance(polymorphic_shapes, str)
    prefix = polymorphic_shapes if is_single else tuple(polymorphic_shapes)
    specs: list[str | None] = []

    def extend(spec, subtree):
        specs.extend([spec] * len(jax.tree.leaves(subtree)))

    try:
        jax.tree.map(extend, prefix, args, is_leaf=lambda x: x is None)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"polymorphic_shapes must be a pytree prefix of the positional arguments: {error}"
        ) from error
    return specs


def dimension_values(
    shapes: Sequence[tuple[Any, ...]], tensors: Sequence[tf.Tensor]
) -> dict[str, tf.Tensor]:
    """The value of each dimension variable, as an int32 scalar.

    A dimension is solved for if it is linear in the only variable that is still unknown.

    Raises:
      ValueError: if the variables cannot be solved for, or if known sizes contradict each other.
    """
    dims = [
        (dim, tensor, axis)
        for shape, tensor in zip(shapes, tensors, strict=True)
        for axis, dim in enumerate(shape)
        if not isinstance(dim, int)
    ]
    # Plain variables first: they need no arithmetic.
    dims.sort(key=lambda item: len(str(item[0])))
    _check_sizes([(dim, tensor.shape[axis]) for dim, tensor, axis in dims])
    values, unsolved = _solve_all(dims, lambda tensor, axis: tf.shape(tensor)[axis])
    if unsolved:
        raise ValueError(f"cannot solve for the dimension variables in {', '.join(unsolved)}")
    return values


def _check_sizes(sizes: Sequence[tuple[Any, int | None]]) -> None:
    """Raises a ValueError if dimensions contradict each other, as far as sizes are known."""
    known = [(dim, size) for dim, size in sizes if size is not None]
    values, _ = _solve_all(known, lambda size: size)
    for dim, size in known:
        if jax_compat.dim_variables(dim) <= values.keys():
            expected = jax_compat.evaluate_dim(dim, values, _INTEGER_OPERATIONS)
            if expected != size:
                where = ", ".join(f"{name} = {value}" for name, value in values.items())
                raise ValueError(f"a dimension {dim} has size {size}, not {expected} ({where})")


def _solve_all(
    dims: Sequence[tuple[Any, ...]], size: Callable[..., Any]
) -> tuple[dict[str, Any], list[str]]:
    """The values of variables, and the dimensions not solved.

    `dims` are dimensions, each followed by the arguments for which `size` returns its size.
    """
    values: dict[str, Any] = {}
    pending = list(dims)
    while pending:
        unsolved = []
        for dim, *args in pending:
            unknown = jax_compat.dim_variables(dim) - values.keys()
            if not unknown:
                continue
            solved = _solve(dim, values, size, *args) if len(unknown) == 1 else None
            if solved is None:
                unsolved.append((dim, *args))
            else:
                values[next(iter(unknown))] = solved
        if len(unsolved) == len(pending):
            return values, [str(dim) for dim, *_ in unsolved]
        pending = unsolved
    return values, []


_LINEAR_OPERATIONS = {"add": operator.add, "mul": operator.mul}
_INTEGER_OPERATIONS: dict[str, Callable[..., Any]] = {
    **_LINEAR_OPERATIONS,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": max,
    "min": min,
}


def _solve(dim: Any, values: dict[str, Any], size: Callable[..., Any], *args: Any) -> Any:
    """The value of the only unknown variable of `dim`, or None if `dim` is not linear in it."""
    (name,) = jax_compat.dim_variables(dim) - values.keys()
    if str(dim) == name:
        return size(*args)
    try:
        at = [
            jax_compat.evaluate_dim(dim, {**values, name: value}, _LINEAR_OPERATIONS)
            for value in range(3)
        ]
    except KeyError:
        return None  # Floor division, minimum and the like have no unique solution.
    slope = at[1] - at[0]
    if not isinstance(slope, int) or not slope or at[2] - at[1] != slope:
        return None
    return (size(*args) - at[0]) // slope
