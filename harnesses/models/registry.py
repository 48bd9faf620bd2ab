"""The class `Model`, and `load`, which finds a model by its name."""

import dataclasses
import importlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from harnesses.models.parameters import random_parameters

NAMES = (
    "actor_critic",
    "bilstm",
    "cnn",
    "diffusion",
    "gemma",
    "gpt",
    "graph_convolution",
    "graph_network",
    "lstm",
    "mobilenet_v2",
    "qwen",
    "resnet50",
    "seq2seq_lstm",
    "transformer",
    "transformer_lm1b",
    "transformer_wmt",
    "unet",
    "vae",
    "vision_transformer",
    "whisper_encoder",
)

# A small model has all kinds of layers of the realistic one, but fewer and narrower.
SIZES = ("small", "realistic")


@dataclasses.dataclass(frozen=True)
class Model:
    """A whole network, as a user would convert it.

    Attributes:
      name: the name of the model, and of its module.
      variables: `variables(key, inputs)` returns the parameters, as `flax.linen.Module.init` does;
        of its result only the structure, the shapes and the dtypes matter.
      apply: `apply(params, inputs)`, a pure JAX function, returns a pytree of arrays.
      draw: `draw(rng, **sizes)` returns inputs, a pytree of numpy arrays, for a generator of numpy
        and the size of each dimension.
      dimensions: the usual sizes of the dimensions of the inputs that may vary, such as "batch".
      tolerance: the largest difference allowed between two compilers in one output, as a fraction
        of the largest magnitude in that output.
      differentiable: whether JAX has a gradient of the model with respect to the parameters.
      adapt: what makes random parameters look trained where the usual ones do not.
    """

    name: str
    variables: Callable[[Any, Any], Any]
    apply: Callable[[Any, Any], Any]
    draw: Callable[..., Any]
    dimensions: Mapping[str, int]
    tolerance: float = 1e-5
    differentiable: bool = True
    adapt: Callable[[Any], Any] = lambda params: params

    def init(self, seed: int) -> Any:
        """Returns parameters, a pytree of numpy arrays.

        Only numpy draws them, so they are the same with every version of JAX and Flax.
        """
        return self.adapt(random_parameters(self.variables, self.make_inputs(0), seed=seed))

    def make_inputs(self, seed: int, **sizes: int) -> Any:
        """Returns inputs, a pytree of numpy arrays.

        Args:
          seed: seed of the numpy generator.
          **sizes: sizes of dimensions, in place of the usual ones.

        Raises:
          ValueError: if the model has no such dimension.
        """
        if unknown := set(sizes) - set(self.dimensions):
            raise ValueError(
                f"{self.name} has the dimensions {', '.join(self.dimensions)}, "
                f"not {', '.join(sorted(unknown))}"
            )
        return self.draw(np.random.default_rng(seed), **{**self.dimensions, **sizes})


def load(name: str, size: str = "realistic") -> Model:
    """Returns the model called `name`; imports the libraries that it needs.

    Args:
      name: one of `NAMES`.
      size: one of `SIZES`.

    Raises:
      ValueError: if no model has this name or size.
    """
    if name not in NAMES:
        raise ValueError(f"unknown model {name!r}; the models are {', '.join(NAMES)}")
    if size not in SIZES:
        raise ValueError(f"unknown size {size!r}; the sizes are {', '.join(SIZES)}")
    return importlib.import_module(f"{__package__}.{name}").MODELS[size]
