"""Random parameters that look trained: none is all zeros, all ones or unusually large."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np


def random_parameters(init: Callable[..., Any], *inputs: Any, seed: int) -> Any:
    """Returns random values for the variables that a Flax `init` would create.

    Flax's own initializers set biases to zero, and normalization statistics to zero and one. Then a
    lowering that ignores them would not be noticed. Their values also depend on the version of JAX.
    Therefore only the names and shapes come from Flax, and its initializers are not run.

    Args:
      init: `init(key, *inputs)` returns a pytree of variables, as `flax.linen.Module.init` does.
      *inputs: example inputs for `init`, pytrees of arrays.
      seed: seed of the numpy generator.

    Returns:
      A pytree like that of `init`, with numpy arrays of the same shapes and dtypes.
    """
    shapes = jax.eval_shape(init, jax.random.key(0), *inputs)
    rng = np.random.default_rng(seed)
    return jax.tree_util.tree_map_with_path(lambda path, s: _draw(rng, path, s), shapes)


def _draw(rng: np.random.Generator, path: tuple, spec: jax.ShapeDtypeStruct) -> np.ndarray:
    names = [str(getattr(entry, "key", "")) for entry in path]
    shape = spec.shape
    match names[-1]:
        case "kernel":
            # The projections of attention have the shape [features, heads, features per head].
            is_projection = len(names) > 1 and names[-2] in ("query", "key", "value")
            fan_in = shape[0] if is_projection else math.prod(shape[:-1])
            value = rng.normal(size=shape) / math.sqrt(fan_in)
        case "scale":
            value = 1 + 0.1 * rng.normal(size=shape)
        case "var":
            value = rng.uniform(0.5, 1.5, size=shape)
        case "bias" | "mean":
            value = 0.1 * rng.normal(size=shape)
        case name if name.endswith("embedding"):
            value = rng.normal(size=shape)
        case name:
            raise ValueError(f"no distribution is known for the parameter {name!r} of {names}")
    return value.astype(spec.dtype)
