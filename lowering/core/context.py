"""What a rule is told about the equation that it lowers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import jax_compat
from lowering.errors import UnsupportedError
from lowering.ops import constant
from lowering.ops import dims as dims_
from lowering.ops.broadcasting import Broadcastable
from lowering.targets import Target

if TYPE_CHECKING:
    from lowering.core.interpreter import Interpreter


@dataclasses.dataclass(frozen=True)
class Context:
    """One equation, as its rule sees it.

    Attributes:
      eqn: the equation.
      interpreter: what lowers the program that the equation is part of.
    """

    eqn: jex_core.JaxprEqn
    interpreter: Interpreter

    @property
    def target(self) -> Target:
        """The target that is lowered for."""
        return self.interpreter.target

    @property
    def in_avals(self) -> list[Any]:
        """The abstract values (shape, dtype) of the operands."""
        return [var.aval for var in self.eqn.invars]

    @property
    def out_avals(self) -> list[Any]:
        """The abstract values of the results."""
        return [var.aval for var in self.eqn.outvars]

    @property
    def out_aval(self) -> Any:
        """The abstract value of the only result."""
        (var,) = self.eqn.outvars
        return var.aval

    def size(self, dim: Any) -> dims_.Size:
        """The size of a dimension: an int where it is known, else an int32 scalar."""
        return self.interpreter.dimensions.size(dim)

    def shape(self, dims: Sequence[Any]) -> tf.Tensor:
        """The sizes of dimensions as one int32 vector (a constant where they are known)."""
        return self.interpreter.dimensions.shape(dims)

    def run(
        self, jaxpr: jex_core.ClosedJaxpr, *operands: tf.Tensor | np.ndarray
    ) -> list[tf.Tensor]:
        """Lowers a closed jaxpr in place, as if its equations stood here.

        Args:
          jaxpr: a closed jaxpr, such as the body of a loop.
          *operands: its inputs.
        """
        return self.interpreter.run_to_tensors(jaxpr, *operands)

    def call(
        self, jaxpr: jex_core.ClosedJaxpr, *operands: tf.Tensor | np.ndarray
    ) -> list[tf.Tensor | np.ndarray]:
        """Like `run`, but results may be known, and a jaxpr that is called often becomes one
        function of the graph."""
        return self.interpreter.call(jaxpr, *operands)

    def lower(
        self,
        fun: Callable[..., Any],
        *operands: tf.Tensor | np.ndarray,
        avals: Sequence[Any] | None = None,
        as_function: bool = False,
        **params: Any,
    ) -> Any:
        """Applies a function written in JAX to tensors.

        It is traced with 64-bit types enabled, so it must name its dtypes.

        Args:
          fun: a function of JAX arrays and of `params`. It must be hashable and the same object
            at each call (not a lambda made on the fly), so that it is traced once.
          *operands: tensors.
          avals: their abstract values; needed where a shape is not static.
          as_function: makes it a function of the graph, called wherever it is applied to such
            operands, where there are no symbolic dimensions.
          **params: hashable parameters.

        Returns:
          The result of `fun`: a tensor, or a list of tensors where `fun` returns a sequence.
        """
        results = self.interpreter.lower(fun, operands, avals, params, as_function)
        return tf.nest.map_structure(_as_tensor, results)

    def unsupported(self, reason: str, instead: str = "") -> NoReturn:
        """Raises an `UnsupportedError` that names this equation.

        Args:
          reason: why the target cannot express it, as part of a sentence.
          instead: what the user can do instead, as a sentence.
        """
        message = describe(self.eqn, self.target, reason, instead)
        raise UnsupportedError(message, located=True)


def _as_tensor(value: Any) -> tf.Tensor:
    if isinstance(value, Broadcastable):
        return value.full()
    return value if isinstance(value, tf.Tensor) else constant(value)


def describe(eqn: jex_core.JaxprEqn, target: Target, reason: str, instead: str = "") -> str:
    """One message that says what could not be lowered, where it is, and what to do instead."""
    operands = ", ".join(str(var.aval.str_short(short_dtypes=True)) for var in eqn.invars)
    params = _short_params(eqn.params)
    message = (
        f"{eqn.primitive.name}({operands}){params} at {jax_compat.source_line(eqn)} "
        f"cannot be lowered for target {target.name!r}: {reason}"
    )
    return f"{message}. {instead}" if instead else message


def _short_params(params: Mapping[str, Any]) -> str:
    shown = [
        f"{name}={value}"
        for name, value in params.items()
        if len(str(value)) <= 60 and "jaxpr" not in name and value is not None
    ]
    return f" [{', '.join(shown)}]" if shown else ""
