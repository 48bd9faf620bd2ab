"""Which dimensions of a model can be symbolic: those with which JAX can trace it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.export

from harnesses.models.registry import Model

# What a symbolic size may have to be a multiple of, as networks halve images.
_MULTIPLES = (1, 2, 4, 8, 16, 32)


def choices(model: Model) -> Iterator[tuple[str, ...]]:
    """The sets of dimensions to try: none, each of them, and all; height and width go together."""
    groups = [
        ("height", "width") if name == "height" else (name,)
        for name in model.dimensions
        if name != "width"
    ]
    yield ()
    yield from groups
    if len(groups) > 1:
        yield tuple(model.dimensions)


def shapes(model: Model, multiples: Mapping[str, int]) -> Any:
    """The polymorphic shapes of the inputs of a model.

    Args:
      model: the model.
      multiples: by name of a dimension that is to be symbolic, what its size is a multiple of.

    Returns:
      A pytree like the inputs, of strings such as "(batch, 4*height, 3)".
    """
    inputs, tree = jax.tree.flatten(model.make_inputs(0))
    larger = {
        name: jax.tree.leaves(model.make_inputs(0, **{name: model.dimensions[name] + multiple}))
        for name, multiple in multiples.items()
    }

    def size(leaf: int, axis: int) -> str:
        constant, terms = inputs[leaf].shape[axis], []
        for name, multiple in multiples.items():
            slope = larger[name][leaf].shape[axis] - inputs[leaf].shape[axis]
            constant -= slope * (model.dimensions[name] // multiple)
            terms += [name if slope == 1 else f"{slope}*{name}"] if slope else []
        return " + ".join([*terms, str(constant)] if constant or not terms else terms)

    specs = [
        f"({', '.join(size(leaf, axis) for axis in range(x.ndim))})"
        for leaf, x in enumerate(inputs)
    ]
    return jax.tree.unflatten(tree, specs)


def trace(model: Model, symbolic: Sequence[str]) -> dict[str, int]:
    """Traces a model with symbolic dimensions.

    Args:
      model: the model.
      symbolic: the names of the dimensions that are to be symbolic.

    Returns:
      By name of a dimension, the smallest number that its size has to be a multiple of for JAX to
      trace the model.

    Raises:
      Exception: what JAX or the model raises, if it can be traced with no such multiple.
    """
    params = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), model.init(0))
    last: Exception | None = None
    for multiple in _MULTIPLES if set(symbolic) - {"batch"} else _MULTIPLES[:1]:
        multiples = {name: 1 if name == "batch" else multiple for name in symbolic}
        if any(model.dimensions[name] % multiples[name] for name in symbolic):
            break
        try:
            jax.eval_shape(model.apply, params, specs(model, multiples))
        except Exception as error:
            last = error
        else:
            return multiples
    assert last is not None
    raise last


def specs(model: Model, multiples: Mapping[str, int]) -> Any:
    """The inputs of a model with symbolic dimensions, as a pytree of `jax.ShapeDtypeStruct`."""
    return jax.export.symbolic_args_specs(model.make_inputs(0), shapes(model, multiples))
