"""The inputs that an export is verified with: those of the caller, or random numbers."""

import itertools
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from lowering import avals, jax_compat
from lowering.errors import ShapeError
from lowering.frontend import plans, polymorphic

# The first size that is tried for a dimension variable, the last, and how many combinations.
_FIRST, _LAST, _TRIES = 3, 64, 10_000

# The largest of random numbers, and their signs, which vary with the seed.
_SCALES = (1, 1, 4, 16, 100)
_SIGNS = ((-1, 1), (0, 1), (-1, 0))

Shape = tuple[Any, ...]


def symbolic_shapes(
    leaves: Sequence[Any],
    tree: Any,
    polymorphic_shapes: Sequence[Any] | None,
    constraints: Sequence[str],
) -> tuple[list[Shape], Any]:
    """The shape of each leaf of the arguments, whose dimensions may be symbolic; their scope.

    Raises:
      ValueError: for what is no specification, or one of another number of dimensions, and for
        constraints on variables that no shape has.
    """
    if polymorphic_shapes is None:
        known = [tuple(map(int, leaf.shape)) for leaf in leaves]
        if constraints:
            _aliases(known, polymorphic.scope_of(constraints))
        return known, None
    structs = [jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves]
    args = jax.tree_util.tree_unflatten(tree, structs)
    scope = polymorphic.scope_of(constraints)
    polymorphic.check_parentheses(polymorphic_shapes)
    specs = polymorphic.of_leaves(polymorphic_shapes, args)
    try:
        for spec in specs:
            polymorphic.check_type(spec)
        for spec, leaf in zip(specs, leaves, strict=True):
            polymorphic.check_sizes(spec, leaf.shape)
        made = jax.export.symbolic_args_specs(args, list(polymorphic_shapes), scope=scope)
    except ShapeError:
        raise
    except (tokenize.TokenError, ValueError) as error:
        raise ValueError(
            f"polymorphic_shapes has an item that is no specification, {polymorphic_shapes!r}: "
            f"{error}"
        ) from error
    shapes = [tuple(leaf.shape) for leaf in jax.tree_util.tree_leaves(made)]
    for shape, leaf in zip(shapes, leaves, strict=True):
        if len(shape) != len(leaf.shape):
            raise ValueError(
                f"polymorphic_shapes has ({', '.join(map(str, shape))}) for an array of the shape "
                f"{tuple(leaf.shape)}, which has {len(leaf.shape)} dimensions"
            )
    _aliases(shapes, scope)
    return shapes, scope


def _aliases(shapes: Sequence[Shape], scope: Any) -> dict[str, Any]:
    """The variables that constraints define as expressions of the dimension variables of shapes.

    Raises:
      ValueError: for a constraint on another variable.
    """
    known = frozenset().union(*(jax_compat.dim_variables(d) for shape in shapes for d in shape))
    found: dict[str, Any] = {}
    for text, _, difference in [] if scope is None else jax_compat.dim_constraints(scope):
        found |= plans.aliases_in(text, difference, known, scope)
    return found


def of(
    leaves: Sequence[Any],
    shapes: Sequence[Shape],
    dtypes: Sequence[Any],
    scope: Any,
    seed: int = 0,
) -> list[np.ndarray]:
    """An array for each leaf of the arguments: itself, or random numbers of its shape and dtype.

    Args:
      leaves: arrays and `jax.ShapeDtypeStruct`s.
      shapes: their shapes, whose dimensions may be symbolic.
      dtypes: the dtypes of the arrays that are made.
      scope: the scope of the dimension variables, if there are any.
      seed: which random numbers: 0 for moderate ones, others for some that are larger, or of one
        sign.

    Raises:
      ValueError: if no sizes are found that the constraints of the scope permit.
    """
    sizes = _sizes(leaves, shapes, scope)
    return [
        np.asarray(leaf).astype(dtype)
        if not isinstance(leaf, jax.ShapeDtypeStruct)
        # NumPy makes scalars of arrays without axes, which are no inputs of runtimes.
        else np.asarray(_random(seed, i, [avals.known_size(d, sizes) for d in shape], dtype))
        for i, (leaf, shape, dtype) in enumerate(zip(leaves, shapes, dtypes, strict=True))
    ]


def _random(seed: int, position: int, shape: Sequence[int], dtype: Any) -> np.ndarray:
    rng = np.random.default_rng((seed, position) if seed else position)
    scale = _SCALES[seed % len(_SCALES)]
    kind = np.dtype(dtype).kind
    if kind == "b":
        return rng.random(shape) < 0.5
    if kind in "iu":
        # Small numbers, as integers are mostly indices.
        return rng.integers(0, 4 * min(scale, 4), shape).astype(dtype)
    least, largest = _SIGNS[seed % len(_SIGNS)]
    values = scale * rng.uniform(least, largest, shape)
    if kind == "c":
        values = values + 1j * rng.uniform(-1, 1, shape)
    return values.astype(dtype)


def _sizes(leaves: Sequence[Any], shapes: Sequence[Shape], scope: Any) -> dict[str, int]:
    """A size for each dimension variable: that of the arrays, or one that constraints permit."""
    symbolic = [d for shape in shapes for d in shape if not isinstance(d, int)]
    names = sorted(frozenset().union(*map(jax_compat.dim_variables, symbolic)))
    # Sizes in expressions other than a variable are left to be checked.
    known: dict[str, int] = {}
    equations: list[tuple[Any, int]] = []
    for leaf, shape in zip(leaves, shapes, strict=True):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            pairs = zip(shape, leaf.shape, strict=True)
            equations += [(d, size) for d, size in pairs if not isinstance(d, int)]
    known.update({str(d): size for d, size in equations if str(d) in names})
    constraints = [] if scope is None else jax_compat.dim_constraints(scope)
    aliases = _aliases(shapes, scope)

    def are_permitted(sizes: Mapping[str, int]) -> bool:
        of_aliases = {name: avals.known_size(dim, sizes) for name, dim in aliases.items()}
        return (
            all(avals.known_size(d, sizes) == size for d, size in equations)
            and all(avals.known_size(d, sizes) >= 0 for d in symbolic)
            and all(
                difference == 0 if is_equality else difference >= 0
                for is_equality, difference in (
                    (is_equality, avals.known_size(dim, {**sizes, **of_aliases}))
                    for _, is_equality, dim in constraints
                )
            )
        )

    for candidate in _candidates([name for name in names if name not in known]):
        sizes = {**known, **candidate}
        if are_permitted(sizes):
            return sizes
    texts = ", ".join(text for text, _, _ in constraints)
    raise ValueError(
        f"no sizes were found for {', '.join(names)} to verify the export with"
        + (f", given {texts}" if texts else "")
        + "; give arrays of possible shapes in args"
    )


def _candidates(names: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes of variables to be tried: first different ones, which show confused dimensions."""
    yield {name: _FIRST + i for i, name in enumerate(names)}
    for size in range(1, _LAST):
        yield dict.fromkeys(names, size)
    all_sizes = itertools.product(range(1, _LAST), repeat=len(names))
    for sizes in itertools.islice(all_sizes, _TRIES):
        yield dict(zip(names, sizes, strict=True))
