"""Programs: models at a size, some of whose dimensions are symbolic."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np

from harnesses import models
from harnesses.models import Model, symbolic


@dataclasses.dataclass(frozen=True)
class Case:
    """What a row of the table is about.

    Attributes:
      size: of `harnesses.models.SIZES`.
      model: the name of the model.
      symbolic: the names of the dimensions that are symbolic, in the order of the model.
    """

    size: str
    model: str
    symbolic: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Program:
    """A model as it is handed to a converter.

    Attributes:
      case: the model, its size, and which dimensions are symbolic.
      multiples: by name of a symbolic dimension, what its size is a multiple of.
    """

    case: Case
    multiples: Mapping[str, int]

    @functools.cached_property
    def model(self) -> Model:
        """The model."""
        return models.load(self.case.model, self.case.size)

    @functools.cached_property
    def params(self) -> Any:
        """The parameters, a pytree of numpy arrays."""
        return self.model.init(0)

    @functools.cached_property
    def structs(self) -> Any:
        """The inputs at their usual sizes, a pytree of `jax.ShapeDtypeStruct`."""
        inputs = self.model.make_inputs(0)
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), inputs)

    @property
    def shapes(self) -> Any:
        """The polymorphic shapes of the inputs, a pytree of strings; None if all are known."""
        return symbolic.shapes(self.model, self.multiples) if self.multiples else None

    @property
    def specs(self) -> Any:
        """The inputs, a pytree of `jax.ShapeDtypeStruct` whose shapes may be symbolic."""
        return symbolic.specs(self.model, self.multiples)

    def samples(self) -> Iterator[Any]:
        """Two inputs to compare with JAX; what is symbolic has another size in the second."""
        for seed, extra in ((1, 0), (2, 1)):
            sizes = {
                name: self.model.dimensions[name] + extra * multiple
                for name, multiple in self.multiples.items()
            }
            yield self.model.make_inputs(seed, **sizes)

    def expected(self) -> Iterator[list[np.ndarray]]:
        """What `jax.jit` makes of each of the samples, as a flat list."""
        run = jax.jit(self.model.apply)
        for inputs in self.samples():
            yield [np.asarray(leaf) for leaf in jax.tree.leaves(run(self.params, inputs))]

    def export_options(self) -> dict[str, Any]:
        """The arguments of the exporters of `lowering.export`; inputs and outputs are numbered."""
        return {
            "fun": self.model.apply,
            "args": (self.structs,),
            "params": self.params,
            "polymorphic_shapes": None if self.shapes is None else [self.shapes],
            "input_names": [f"x{i}" for i in range(len(jax.tree.leaves(self.structs)))],
            "output_names": [f"y{i}" for i in range(self.count_outputs())],
            "verify": False,
        }

    def count_outputs(self) -> int:
        """How many arrays the model returns."""
        return len(jax.tree.leaves(jax.eval_shape(self.model.apply, self.params, self.structs)))


def trace(case: Case) -> Program:
    """The program of a case.

    Raises:
      Exception: what JAX raises, if it cannot trace the model with these symbolic dimensions.
    """
    model = models.load(case.model, case.size)
    return Program(case, symbolic.trace(model, case.symbolic))
