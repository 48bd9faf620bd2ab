"""A layer in JAX, and by hand in TensorFlow."""

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

_MODULES = (
    "activations",
    "attention",
    "blocks",
    "choices",
    "convolutions",
    "dense",
    "elementwise",
    "indexing",
    "libraries",
    "modules",
    "normalization",
    "numerics",
    "padding",
    "pooling",
    "recurrent",
    "reductions",
    "shapes",
    "signals",
    "training",
    "variants",
)


@dataclasses.dataclass(frozen=True)
class Layer:
    """A function of arrays, in JAX and in TensorFlow.

    Attributes:
      name: what people call it; unique.
      fun: a JAX function of `args`.
      by_hand: a TensorFlow function of tensors that gives the same, in as few ops as a person who
        knows TensorFlow would write.
      args: NumPy arrays.
      symbolic: whether the first axis of each argument has any size.
    """

    name: str
    fun: Callable[..., Any]
    by_hand: Callable[..., Any]
    args: tuple[np.ndarray, ...]
    symbolic: bool = False


@functools.cache
def all_layers() -> Mapping[str, Layer]:
    """All layers by name."""
    found: dict[str, Layer] = {}
    for module in _MODULES:
        for layer in importlib.import_module(f"harnesses.layers.{module}").layers():
            if layer.name in found:
                raise ValueError(f"two layers are called {layer.name!r}")
            found[layer.name] = layer
    return found


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Random float32 numbers."""
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


def applied(module: Any, *inputs: Any, **options: Any) -> tuple[Callable[..., Any], Any]:
    """A function that applies a module of Flax with random variables, and these.

    All variables are positive, as variances have to be, and none is 0 or 1, which converters leave
    out.
    """
    shapes = jax.eval_shape(functools.partial(module.init, **options), jax.random.key(0), *inputs)
    rng = np.random.default_rng(0)
    variables = jax.tree.map(lambda s: rng.uniform(0.1, 0.6, s.shape).astype(s.dtype), shapes)
    return lambda *args: module.apply(variables, *args, **options), variables


def nnx_applied(make: Callable[[nnx.Rngs], nnx.Module]) -> tuple[Callable[..., Any], Any]:
    """A function that applies a module of nnx with random parameters, and these by name."""
    graph, state = nnx.split(nnx.eval_shape(lambda: make(nnx.Rngs(0))))
    rng = np.random.default_rng(0)
    state = jax.tree.map(lambda s: rng.uniform(0.1, 0.6, s.shape).astype(s.dtype), state)
    return lambda *args: nnx.merge(graph, state)(*args), nnx.to_pure_dict(state)
