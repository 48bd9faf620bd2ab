"""Eager calls of a program by a function of TensorFlow.

An eager call runs the rules of a program anew. They look at shapes, dtypes and parameters, which
takes longer than the ops of small arrays do. A program that is called for the third time becomes a
function of TensorFlow: to make it takes about as long as three calls. Large constants stay where
eager execution keeps them.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from lowering import registry
from lowering.errors import LoweringError
from lowering.facts import Trait
from lowering.ops import constants, kernels, modes
from lowering.ops.outlining import spec
from lowering.passes.jaxprs import Jaxpr, called_jaxprs
from lowering.passes.program import Program
from lowering.registry import has_trait
from lowering.targets import Target

# The call that makes the function.
_CALL = 3

# Lowers a program, given the values of dimension variables, and its arguments.
Lower = Callable[..., list[tf.Tensor]]
# Makes results that cannot be differentiated of results and of the arguments.
Prevent = Callable[[Sequence[tf.Tensor], Sequence[tf.Tensor]], list[tf.Tensor]]


class EagerCalls:
    """The eager calls of a traced program. Several threads may call it at once."""

    def __init__(self, program: Program, target: Target):
        """
        Args:
          program: the program.
          target: who runs the ops.
        """
        self._program = program
        self._target = target
        self._calls = 0
        self._function: Any = None

    def function(
        self, lower: Lower, variables: Mapping[str, tf.Tensor]
    ) -> Callable[..., list[tf.Tensor]] | None:
        """A function of the arguments that calls the program, if it was worth its making.

        Args:
          lower: lowers the program, eagerly or in a graph, given the values of dimension
            variables, and the arguments.
          variables: the values of dimension variables.

        Returns:
          None in a graph, for the first calls, and where a function would not do the same.
        """
        # Who looks at each op, and who lets functions run eagerly, wants to see the ops.
        if not modes.is_eager() or kernels.is_seen_by_others() or tf.config.functions_run_eagerly():
            return None
        if self._function is None:
            self._calls += 1
            if self._calls != _CALL or not self._may_be_function():
                return None
            self._function = self._made(lower, variables)
            if self._function is None:
                return None
        return functools.partial(self._call, tuple(variables.values()))

    def _call(
        self, variables: Sequence[tf.Tensor], *tensors: tf.Tensor, prevent: Prevent | None = None
    ) -> list[tf.Tensor]:
        assert self._function is not None
        # The gradient of a program is that of JAX.
        with record.stop_recording():
            results = list(self._function(*variables, *tensors))
        return results if prevent is None else prevent(results, tensors)

    def _made(self, lower: Lower, variables: Mapping[str, tf.Tensor]) -> Any:
        """The program as a function; None if a graph cannot hold it."""
        specs = [
            *(tf.TensorSpec((), x.dtype) for x in variables.values()),
            *(spec(a) for a in self._program.traced.in_avals),
        ]

        names = tuple(variables)

        @tf.function(autograph=False)
        def function(*arguments):
            given = dict(zip(names, arguments, strict=False))
            with constants.captured():
                return lower(given, *arguments[len(names) :])

        try:
            return function.get_concrete_function(*specs)
        except LoweringError:
            return None

    def _may_be_function(self) -> bool:
        """Whether a function does the same as the rules, each time that it is called."""
        # Eager execution rounds numbers of fewer than eight bits by NumPy.
        is_whole = not self._program.narrow_dtypes and self._target.has_tensorflow_kernels
        return is_whole and self._is_pure(self._program.jaxpr)

    def _is_pure(self, jaxpr: Jaxpr) -> bool:
        """Whether nothing in a jaxpr draws, calls back, or is lowered by a rule of others."""
        for eqn in jaxpr.eqns:
            name = eqn.primitive.name
            # Callbacks have both traits.
            calls_back = has_trait(name, Trait.NOT_FOLDED | Trait.PER_DEVICE)
            if eqn.effects or calls_back or has_trait(name, Trait.DRAWS):
                return False
            rule = registry.rule_of(eqn, self._target)
            if rule is None or not rule.fun.__module__.startswith("lowering."):
                return False
            if not all(map(self._is_pure, called_jaxprs(eqn))):
                return False
        return True
