"""The class `Model`, and `load`, which finds a model by its name."""

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

NAMES = (
    "actor_critic",
    "bilstm",
    "cnn",
    "graph_network",
    "lstm",
    "resnet50",
    "seq2seq_lstm",
    "transformer",
    "transformer_lm1b",
    "transformer_wmt",
    "vae",
)


@dataclasses.dataclass(frozen=True)
class Model:
    """A whole network, as a user would convert it.

    Attributes:
      name: the name of the model, and of its module.
      init: `init(seed)` returns the parameters, a pytree of float32 numpy arrays. Only numpy draws
        them, so they are the same with every version of JAX and Flax.
      apply: `apply(params, inputs)`, a pure JAX function, returns a pytree of arrays.
      make_inputs: `make_inputs(seed, batch)` returns a pytree of numpy arrays.
      tolerance: the largest difference allowed between two compilers in one output, as a fraction
        of the largest magnitude in that output.
      differentiable: whether JAX has a gradient of the model with respect to the parameters.
    """

    name: str
    init: Callable[[int], Any]
    apply: Callable[[Any, Any], Any]
    make_inputs: Callable[[int, int], Any]
    tolerance: float = 1e-5
    differentiable: bool = True


def load(name: str) -> Model:
    """Returns the model called `name`; imports the libraries that it needs.

    Raises:
      ValueError: if no model has this name.
    """
    if name not in NAMES:
        raise ValueError(f"unknown model {name!r}; the models are {', '.join(NAMES)}")
    return importlib.import_module(f"{__package__}.{name}").MODEL
