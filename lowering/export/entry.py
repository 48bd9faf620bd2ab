"""Entries: functions of flat, named tensors that can be exported, and what they compute in JAX."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from lowering.boundary import models
from lowering.errors import UnsupportedError


@dataclasses.dataclass(frozen=True)
class Reference:
    """What an entry computes, in JAX.

    Attributes:
      fun: the function.
      arguments: the arguments of `fun`, of the inputs of the entry.
      results: the outputs of the entry, of what `fun` returns.
      weights: how many of the leaves of its arguments, the first ones, are parameters.
    """

    fun: Callable[..., Any]
    arguments: Callable[[Sequence[np.ndarray]], tuple[Any, ...]]
    results: Callable[[Any], list[np.ndarray]]
    weights: int = 0

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        return self.results(self.fun(*self.arguments(inputs)))


@dataclasses.dataclass(frozen=True)
class Entry:
    """A function that is exported under a name.

    Attributes:
      function: a TensorFlow function of the inputs, which returns its results by name.
      specs: the inputs; their names are those of the exported model.
      reference: the JAX function of the same inputs, which returns a list of arrays.
      samples: inputs to verify the export with.
      is_given: whether the samples are the caller's, rather than random numbers.
      inputs: the inputs, of a tuple of positional arguments.
      draw: makes other random arguments of a seed; None if the caller has given some.
      dtypes: for runtimes other than TensorFlow, the dtypes of the outputs of the JAX function,
        once it is traced. Complex outputs have a last dimension for their two parts there, and
        bfloat16 is float32.
      leaves_nan: whether the numerics of the target leave open what ops make of NaN.
      sizes: the shapes of inputs and outputs by name, with expressions such as "2*b" for symbolic
        sizes.
      outputs: the names of the results in their order, once the function has been traced.
    """

    function: Any
    specs: Sequence[tf.TensorSpec]
    reference: Reference
    samples: Sequence[np.ndarray]
    outputs: list[str]
    is_given: bool = False
    inputs: Callable[[Sequence[Any]], list[np.ndarray]] = list
    draw: Callable[[int], Any] | None = None
    dtypes: dict[str, np.dtype] = dataclasses.field(default_factory=dict)
    leaves_nan: bool = False
    sizes: Callable[[], dict[str, list[int | str]]] = dict

    @functools.cached_property
    def concrete(self) -> Any:
        """The traced function."""
        return self.function.get_concrete_function(*self.specs)

    def check_returns(self) -> None:
        """Raises an UnsupportedError if the function returns no arrays."""
        if not self.concrete.outputs:
            raise UnsupportedError("the function returns no arrays, so there is nothing to compute")

    def with_samples(self, samples: Sequence[np.ndarray]) -> "Entry":
        """The entry with other inputs to verify the export with."""
        return dataclasses.replace(self, samples=samples)


def of_flat(
    call: Callable[..., list[Any]],
    specs: Sequence[tf.TensorSpec],
    reference: Reference,
    arrays: Sequence[np.ndarray],
    outputs: list[str],
    for_consumer: bool,
    is_given: bool = True,
    inputs: Callable[[Sequence[Any]], list[np.ndarray]] = list,
) -> Entry:
    """An entry for a function of tensors that returns a list, and names its results in `outputs`.

    If it is `for_consumer`, inputs and outputs are in dtypes that runtimes have: complex numbers
    have a last dimension for their two parts, and bfloat16 is float32.
    """
    dtypes: dict[str, np.dtype] = {}
    if not for_consumer:

        def named(*tensors: Any) -> dict[str, tf.Tensor]:
            found = call(*tensors)
            return dict(zip(outputs, found, strict=True))

        function = tf.function(named, autograph=False)
        return Entry(function, specs, reference, arrays, outputs, is_given, inputs)

    of_function = [spec.dtype for spec in specs]

    def run(*tensors: Any) -> dict[str, tf.Tensor]:
        found = call(*map(models.from_runtime, tensors, of_function))
        results = dict(zip(outputs, found, strict=True))
        dtypes.update({name: np.dtype(x.dtype.as_numpy_dtype) for name, x in results.items()})
        return {name: models.to_runtime(x) for name, x in results.items()}

    def arguments(given: Sequence[np.ndarray]) -> tuple[Any, ...]:
        return reference.arguments(
            [
                models.as_logical(x, np.dtype(dtype.as_numpy_dtype))
                for x, dtype in zip(given, of_function, strict=True)
            ]
        )

    return Entry(
        tf.function(run, autograph=False),
        list(map(models.spec_of_runtime, specs)),
        dataclasses.replace(
            reference,
            arguments=arguments,
            results=lambda found: list(map(models.of_runtime, reference.results(found))),
        ),
        list(map(models.of_runtime, arrays)),
        outputs,
        is_given,
        lambda given: list(map(models.of_runtime, inputs(given))),
        dtypes=dtypes,
    )
