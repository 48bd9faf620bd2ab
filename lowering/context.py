"""What a rule is told about the equation that it lowers."""

import contextvars
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import jax.extend.core as jex_core
import tensorflow as tf

from lowering import jax_compat
from lowering.errors import UnsupportedError
from lowering.ops import dims as dims_
from lowering.ops import modes, values
from lowering.ops.values import Value
from lowering.targets import Mode, Target

# The equation that ops are made for now: one of the user's program, not of a decomposition. None
# outside of all.
EQUATION: contextvars.ContextVar[jex_core.JaxprEqn | None] = contextvars.ContextVar(
    "equation", default=None
)


@dataclasses.dataclass(frozen=True)
class Context:
    """One equation, as its rule sees it.

    Attributes:
      eqn: the equation.
      lowering: the interpreter of the program that the equation is part of. It stands above this
        module, which does not import it.
    """

    eqn: jex_core.JaxprEqn
    lowering: Any

    @property
    def target(self) -> Target:
        """The target that is lowered for."""
        return self.lowering.target

    @property
    def mode(self) -> Mode:
        """How TensorFlow executes the ops that are made now."""
        return modes.current()

    @property
    def takes_xla_ops(self) -> bool:
        """Whether the ops that are made now may be XLA's: it is sure to compile them."""
        return self.target.has_xla_ops and self.mode is Mode.COMPILED

    def by_mode(
        self, op_by_op: Callable[..., Any], compiled: Callable[..., Any], *operands: Any
    ) -> Any:
        """The results of `op_by_op`, or of `compiled` where XLA compiles; see `modes.by_mode`.

        A natural graph has `compiled` alone, in simpler ops: it may be run by something else.
        """
        if self.target.is_natural and self.mode is Mode.GRAPH:
            return compiled(*operands)
        return modes.by_mode(op_by_op, compiled, *operands)

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
        return self.lowering.dimensions.size(dim)

    def shape(self, dims: Sequence[Any]) -> tf.Tensor:
        """The sizes of dimensions as one int32 vector (a constant where they are known)."""
        return self.lowering.dimensions.shape(dims)

    def run(self, jaxpr: jex_core.ClosedJaxpr, *operands: Value) -> list[tf.Tensor]:
        """Lowers a closed jaxpr in place, as if its equations stood here.

        Args:
          jaxpr: a closed jaxpr, such as the body of a loop.
          *operands: its inputs.
        """
        return self.lowering.run_to_tensors(jaxpr, *operands)

    def call(self, jaxpr: jex_core.ClosedJaxpr, *operands: Value) -> list[Value]:
        """Like `run`, but results may be known, and a jaxpr that is called often becomes one
        function of the graph."""
        return self.lowering.call(jaxpr, *operands)

    def equation(self, eqn: jex_core.JaxprEqn, *operands: Value) -> list[tf.Tensor]:
        """Lowers another equation in place of this one.

        Args:
          eqn: an equation, such as this one on other dtypes.
          *operands: its operands.

        Returns:
          Its results. They may be smaller than their shapes where this equation's may be.
        """
        results = self.lowering.equation(eqn, operands)
        return [values.tensor(values.smallest(x)) for x in results]

    def as_function(self, lower: Callable[..., Any], *operands: Value) -> list[tf.Tensor]:
        """`lower(ctx, *operands)`, inside of a function if TensorFlow executes eagerly.

        Eager execution of a loop op by op would take too long; the function is traced once.

        Args:
          lower: a function of a context of the equation and of its operands; makes the ops.
          *operands: the operands of the equation.
        """
        if self.mode is not Mode.EAGER:
            return lower(self, *operands)

        def lower_in(lowering: Any, *operands: Value) -> Any:
            return lower(Context(self.eqn, lowering), *operands)

        return self.lowering.as_function(self.eqn, lower_in, operands)

    def lower(
        self,
        fun: Callable[..., Any],
        *operands: Value,
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
        results = self.lowering.lower(fun, operands, avals, params, as_function)
        return tf.nest.map_structure(values.tensor, results)

    def unsupported(self, reason: str, instead: str = "") -> NoReturn:
        """Raises an `UnsupportedError` that names this equation.

        Args:
          reason: why the target cannot express it, as part of a sentence.
          instead: what the user can do instead, as a sentence.
        """
        # The interpreter adds the equation and its line.
        raise UnsupportedError(f"{reason}. {instead}" if instead else reason)


def describe(eqn: jex_core.JaxprEqn, target: Target, reason: str, around: str = "") -> str:
    """One message that says what could not be lowered, where it is, and why.

    Args:
      eqn: the equation.
      target: what it was lowered for.
      reason: why it could not be, and what to do instead.
      around: the line of what the equation is in, for one that has no line itself.
    """
    operands = ", ".join(str(var.aval.str_short(short_dtypes=True)) for var in eqn.invars)
    params = _short_params(eqn.params)
    line = jax_compat.source_line(eqn) or around
    return (
        f"{eqn.primitive.name}({operands}){params}{f' at {line}' if line else ''} "
        f"cannot be lowered for target {target.name!r}: {reason}"
    )


def _short_params(params: Mapping[str, Any]) -> str:
    shown = [
        f"{name}={value}"
        for name, value in params.items()
        if len(str(value)) <= 60 and "jaxpr" not in name and value is not None
    ]
    return f" [{', '.join(shown)}]" if shown else ""
