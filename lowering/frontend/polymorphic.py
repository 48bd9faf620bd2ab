"""`polymorphic_shapes`: which dimensions of the arguments are symbolic."""

import functools
import itertools
import re
import tokenize
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import tensorflow as tf

from lowering import jax_compat
from lowering.errors import ShapeError
from lowering.frontend import containers
from lowering.frontend.plans import Argument

# The shape of a leaf, with None for sizes unknown to TensorFlow; None if its rank is unknown.
StaticShape = tuple[int | None, ...] | None


def specification(dims: Iterable[Any]) -> str:
    """A shape as text, as Python writes a tuple: "()", "(b,)" or "(b, 3)"."""
    listed = list(map(str, dims))
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


def texts(specifications: Any, args: Any) -> Any:
    """Specifications in which shapes such as `("b", 128)` are strings such as "(b, 128)".

    Args:
      specifications: a pytree prefix of `args` with strings, shapes and None. A shape is a
        tuple of integers, strings, `...`, and None where a size is known. It is in the place of an
        array, or of a container whose arrays all have it, if it has an integer or `...`.
      args: the positional arguments.
    """
    if not isinstance(specifications, tuple | list) or len(specifications) != len(args):
        return specifications
    return type(specifications)(map(_text, specifications, args))


def _text(specifications: Any, args: Any) -> Any:
    if specifications is None or isinstance(specifications, str):
        return specifications
    if isinstance(specifications, dict) and isinstance(args, dict):
        return {key: _text(spec, args.get(key)) for key, spec in specifications.items()}
    if not isinstance(specifications, tuple | list):
        return specifications
    has_sizes = any(isinstance(dim, int) or dim is ... for dim in specifications)
    is_of_array = has_sizes or jax.tree_util.all_leaves([args])
    if specifications and isinstance(specifications, tuple) and is_of_array:
        dims = ["..." if dim is ... else "_" if dim is None else str(dim) for dim in specifications]
        return specification(dims)
    if not isinstance(args, tuple | list) or len(args) != len(specifications):
        return specifications
    made = [_text(spec, arg) for spec, arg in zip(specifications, args, strict=True)]
    is_named = hasattr(specifications, "_fields")
    return type(specifications)(*made) if is_named else type(specifications)(made)


def symbolic_shapes(
    args: Sequence[Any],
    polymorphic_shapes: Any,
    constraints: Sequence[str],
    leaves: Sequence[tuple[str, StaticShape]],
) -> tuple[tuple[Argument, ...], Any]:
    """The shape of each leaf of the positional arguments, with symbolic dimensions.

    Args:
      args: the positional arguments, as pytrees.
      polymorphic_shapes: a pytree prefix of `args` with shape specifications such as "(b, 28, _)"
        or ("b", 28, "_"), or None where the shape is that of the argument.
      constraints: constraints on the dimension variables, such as "b >= 4".
      leaves: the name and the static shape of each leaf of `args`, and of further arguments that
        have no specification.

    Returns:
      The shapes, and JAX's scope of their variables, which is the same for the same
      specifications.

    Raises:
      ValueError: if a specification is none, does not fit its argument, or is missing for a
        dimension that TensorFlow does not know.
    """
    plain = containers.plain(polymorphic_shapes)
    specs = of_leaves(texts(plain, tuple(args)), tuple(args))
    specs += [None] * (len(leaves) - len(specs))
    expanded = tuple(
        _expanded(name, shape, spec) for (name, shape), spec in zip(leaves, specs, strict=True)
    )
    if isinstance(constraints, str):
        raise ValueError(f"polymorphic_constraints is a sequence of strings, not {constraints!r}")
    if not constraints and all(spec is None for _, _, spec in expanded):
        return tuple(Argument(name, dims, None) for name, dims, _ in expanded), None
    return _parsed(expanded, tuple(constraints))


def of_structs(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], Any, list[str]]:
    """The symbolic dimensions that arguments have themselves, as `jax.export` makes them.

    Args:
      args: the positional arguments, as pytrees of arrays and `jax.ShapeDtypeStruct`s.

    Returns:
      The arguments with a size of 1 in the place of symbolic ones, their specifications, and the
      constraints of their scope. The specifications are None if no dimension is symbolic.

    Raises:
      ValueError: for dimensions of several scopes.
    """

    def symbolic(leaf: Any) -> list[Any]:
        shape = getattr(leaf, "shape", None)
        dims = shape if isinstance(shape, tuple) else ()  # That of a class is no tuple.
        return [dim for dim in dims if jax.export.is_symbolic_dim(dim)]

    found = [dim for leaf in jax.tree_util.tree_leaves(args) for dim in symbolic(leaf)]
    if not found:
        return args, None, []
    if any(dim.scope is not found[0].scope for dim in found):
        raise ValueError(
            f"the symbolic dimensions {', '.join(sorted(set(map(str, found))))} are of several "
            "scopes; make all shapes by one call of jax.export.symbolic_shape, or with one scope="
        )

    def text(leaf: Any) -> str | None:
        return specification(leaf.shape) if symbolic(leaf) else None

    def sized(leaf: Any) -> Any:
        if not symbolic(leaf):
            return leaf
        sizes = [1 if jax.export.is_symbolic_dim(dim) else dim for dim in leaf.shape]
        return jax.ShapeDtypeStruct(sizes, leaf.dtype)

    # A scope may have constraints on variables of other shapes, which say nothing of these.
    known = frozenset().union(*map(jax_compat.dim_variables, found))
    constraints = [
        text
        for text, _, difference in jax_compat.dim_constraints(found[0].scope)
        if jax_compat.dim_variables(difference) <= known
    ]
    tree_map = jax.tree_util.tree_map
    return tree_map(sized, args), tree_map(text, args), constraints


def of_leaves(polymorphic_shapes: Any, args: tuple[Any, ...]) -> list[Any]:
    """The specification of each leaf of `args`.

    Raises:
      ValueError: if the specifications are no pytree prefix of `args`.
    """
    is_single = polymorphic_shapes is None or isinstance(polymorphic_shapes, str)
    if not is_single and not isinstance(polymorphic_shapes, list | tuple):
        raise ValueError(
            "polymorphic_shapes is a specification, or a sequence of them for the positional "
            f"arguments, not {polymorphic_shapes!r}"
        )
    prefix = polymorphic_shapes if is_single else tuple(polymorphic_shapes)
    if not is_single and len(prefix) != len(args):
        raise ValueError(
            f"polymorphic_shapes has {_counted(len(prefix), 'item')} for "
            f"{_counted(len(args), 'positional argument')}"
        )
    specs: list[Any] = []

    def extend(spec, subtree):
        specs.extend([spec] * len(jax.tree.leaves(subtree)))

    try:
        jax.tree.map(extend, prefix, args, is_leaf=lambda x: x is None)
    except (TypeError, ValueError) as error:
        reason = str(error).replace("tree_map tree", "polymorphic_shapes")
        raise ValueError(
            "polymorphic_shapes must be a pytree prefix of the positional arguments, with a string "
            f'or a tuple for an array, such as "(b, 3)" or ("b", 3): {reason}'
        ) from error
    return specs


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _expanded(
    name: str, shape: StaticShape, spec: str | None
) -> tuple[str, tuple[int | str, ...], str | None]:
    """A name, its dimensions where "_" and "..." are replaced by sizes, and its specification."""
    if spec is None:
        if shape is None or None in shape:
            known = "an unknown rank" if shape is None else f"the shape {tf.TensorShape(shape)}"
            raise ValueError(
                f"argument {name} has {known}; name its dimensions with polymorphic_shapes"
            )
        return name, tuple(size for size in shape if size is not None), None
    try:
        dims = _without_placeholders(spec, shape)
    except ValueError as error:
        raise ValueError(f"polymorphic_shapes {spec!r} for {name}: {error}") from error
    if shape is not None and len(dims) != len(shape):
        raise ShapeError.because(
            f"{name} has {_counted(len(shape), 'dimension')}, not {len(dims)}; "
            f"polymorphic_shapes {spec!r} for {name}"
        )
    return name, dims, spec


def _without_placeholders(spec: Any, shape: StaticShape) -> tuple[int | str, ...]:
    """The dimensions of a specification: sizes for placeholders, and text for all others.

    They are as many as the specification asks for.
    """
    check_type(spec)
    texts = _split(spec)
    sizes = () if shape is None else shape
    dims: list[int | str] = []
    for axis, text in enumerate(texts):
        if text not in ("_", "..."):
            dims.append(text)
            continue
        if text == "..." and axis < len(texts) - 1:
            raise ValueError("'...' has to be the last dimension")
        if shape is None:
            raise ValueError(f"{text!r} needs an argument of known rank")
        found = sizes[axis : axis + 1 if text == "_" else None]
        if None in found:
            raise ValueError(f"{text!r} is for sizes that are known, unlike those of {sizes}")
        dims += [size for size in found if size is not None]
        if text == "_" and not found:
            dims.append(text)  # The argument has too few dimensions.
    return tuple(dims)


def check_type(spec: Any) -> None:
    """Raises a ValueError for what is neither a specification nor None."""
    if spec is not None and not isinstance(spec, str):
        raise ValueError(f"a specification is a string or None, not {type(spec).__name__}")


def check_sizes(spec: str | None, shape: Sequence[int]) -> None:
    """Raises a ShapeError if a specification has a number that is not the size of its dimension."""
    dims = [] if spec is None else _split(spec)
    if len(dims) == len(shape):
        for dim, size in zip(dims, shape, strict=True):
            if dim.isdecimal() and int(dim) != size:
                raise ShapeError.because(
                    f"polymorphic_shapes has {spec!r} for an array of the shape {tuple(shape)}: "
                    f"the size {dim} does not fit {size}"
                )


def check_parentheses(specifications: Any) -> None:
    """Raises a ValueError for the first text in a pytree whose parentheses do not match."""
    for spec in jax.tree.leaves(specifications):
        try:
            _split(str(spec))
        except ValueError as error:
            raise ValueError(f"polymorphic_shapes {spec!r}: {error}") from error


def _split(spec: str) -> list[str]:
    """The dimensions of a specification, which commas separate; some are in calls, as in max."""
    texts, depth = [""], 0
    for char in spec.strip():
        depth += (char == "(") - (char == ")")
        if depth < 0:
            raise ValueError("a parenthesis is closed that has not been opened")
        if char == "," and not depth:
            texts.append("")
        else:
            texts[-1] += char
    if depth:
        raise ValueError("a parenthesis is not closed")
    texts = [text.strip() for text in texts]
    if len(texts) == 1 and _is_in_parentheses(texts[0]):
        return _split(texts[0][1:-1])
    return texts if texts[-1] else texts[:-1]  # A comma may come last, and a scalar has none.


def _is_in_parentheses(text: str) -> bool:
    """Whether the parenthesis at the beginning is closed at the end; all of them are closed."""
    inside = itertools.accumulate((char == "(") - (char == ")") for char in text[:-1])
    return text.startswith("(") and all(inside)


def scope_of(constraints: Sequence[str]) -> Any:
    """JAX's scope of dimension variables with constraints.

    Raises:
      ValueError: for what is no constraint; the message has its text.
    """
    try:
        return jax.export.SymbolicScope(tuple(constraints))
    except (ValueError, SyntaxError, tokenize.TokenError):
        # One of them is wrong; JAX's message lacks its text.
        for constraint in constraints:
            _check_constraint(constraint)
        raise


def _check_constraint(constraint: Any) -> None:
    try:
        jax.export.SymbolicScope((constraint,))
    except (ValueError, SyntaxError, tokenize.TokenError) as error:
        sides = re.split("[><=]=", constraint) if isinstance(constraint, str) else ()
        is_whole = len(sides) == 2 and all(map(str.strip, sides))
        reason = f": {error}" if is_whole else ""
        raise ValueError(
            f"polymorphic_constraints has {constraint!r}, which is no constraint such as "
            f"'b >= 4', with '>=', '<=' or '==' between two dimensions{reason}"
        ) from error


@functools.lru_cache(maxsize=1024)
def _parsed(
    expanded: tuple[tuple[str, tuple[int | str, ...], str | None], ...],
    constraints: tuple[str, ...],
) -> tuple[tuple[Argument, ...], Any]:
    """The arguments with symbolic dimensions, and their scope.

    JAX takes variables of two scopes for different ones. Cached, so that arguments of other sizes
    have the same variables and need no other trace.
    """
    scope = scope_of(constraints)
    arguments = []
    for name, dims, spec in expanded:
        try:
            parsed = [d if isinstance(d, int) else _dimension(d, scope) for d in dims]
        except ValueError as error:
            raise ValueError(f"polymorphic_shapes {spec!r} for {name}: {error}") from error
        arguments.append(Argument(name, tuple(parsed), spec))
    return tuple(arguments), scope


def _dimension(text: str, scope: Any) -> Any:
    """One dimension, which JAX parses.

    Raises:
      ValueError: if it is none, or is a negative size.
    """
    if not text:
        raise ValueError("a dimension is missing between two commas")
    try:
        (dim,) = jax.export.symbolic_shape(text, scope=scope)
    except (SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{text!r} is no dimension: {error}") from error
    if isinstance(dim, int) and dim < 0:
        raise ValueError(f"the size {dim} is negative")
    return dim
