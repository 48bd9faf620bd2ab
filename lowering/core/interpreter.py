"""Walks a jaxpr and calls one rule per equation."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import avals, jax_compat, registry, targets
from lowering.context import EQUATION, Context, describe
from lowering.core.caches import ProgramCaches
from lowering.core.representations import REPRESENTATIONS, Representation
from lowering.errors import LoweringError, UnsupportedError
from lowering.ops import constant, dtypes, integers, modes, names, values
from lowering.ops.constants import OF_PARAMETERS
from lowering.ops.dims import Dimensions
from lowering.ops.outlining import Functions
from lowering.ops.values import Broadcastable, Value
from lowering.passes import expansion, flattening, pipeline
from lowering.passes.flattening import Flattened
from lowering.passes.jaxprs import Jaxpr, jaxprs_among
from lowering.passes.legalize.complex_numbers import has_complex
from lowering.passes.program import Program
from lowering.passes.trace import trace_ours, trace_ours_once
from lowering.registry import Trait
from lowering.targets import PORTABLE, Target
from lowering.tensors import movement

_MAY_BE_PARTIAL = Trait.ELEMENTWISE | Trait.BROADCASTS


class Interpreter:
    """Lowers the equations of one program for one target."""

    def __init__(
        self,
        target: Target,
        dimensions: Dimensions,
        program: Program,
        caches: ProgramCaches,
        functions: Functions | None = None,
    ):
        """
        Args:
          target: who runs the ops.
          dimensions: the values of dimension variables.
          program: the program, or that of which a part is lowered.
          caches: those of the program.
          functions: the functions of the graph; by default those of eager execution, or of a new
            graph.
        """
        self.target = target
        self.dimensions = dimensions
        self.folder = caches.folder
        self._program = program
        self._caches = caches
        if functions is None:
            is_eager = modes.is_eager()
            functions = caches.functions if is_eager else Functions()
        self._functions = functions

    @property
    def highest_rank(self) -> int:
        """The most axes that an array of the program has."""
        return self._program.highest_rank

    def run(self, jaxpr: Jaxpr, *operands: Value) -> list[Value]:
        """Lowers a jaxpr in place; returns its results."""
        given = _constants(jaxpr)
        jaxpr = pipeline.optimized(jaxpr, modes.current(), self._program.outlined, self.target)
        if self.target.is_consumer:
            self.folder.note_scaled(given, _constants(jaxpr))
        env: dict[jex_core.Var, Value] = {}
        env.update(zip(jaxpr.constvars, _constants(jaxpr), strict=True))
        env.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            is_literal = isinstance(atom, jex_core.Literal)
            return self.folder.literal(atom) if is_literal else env[atom]

        with names.Scopes() as scopes:
            for eqn in jaxpr.eqns:
                scopes.enter(jax_compat.name_stack(eqn))
                results = self._lower(eqn, [read(atom) for atom in eqn.invars], REPRESENTATIONS)
                env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def run_to_tensors(self, jaxpr: Jaxpr, *operands: Value) -> list[tf.Tensor]:
        """Lowers a jaxpr in place; returns its results, known ones as constants."""
        results = self.run(jaxpr, *operands)
        return [
            values.tensor(x, getattr(var.aval, "dtype", None))
            for x, var in zip(results, jaxpr.outvars, strict=True)
        ]

    def equation(self, eqn: jex_core.JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """Lowers an equation, even if its operands are known; returns its results."""
        return self._lower(eqn, operands, REPRESENTATIONS[1:])

    def known_equation(self, eqn: jex_core.JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        """Lowers an equation on known operands, outside of the graph; returns its results.

        It has no symbolic dimensions. The values of those of the program belong to the graph.
        TensorFlow runs the equation, also if the target is another runtime.
        """
        target = PORTABLE if self.target.is_consumer else self.target
        outside = Interpreter(target, Dimensions({}), self._program, self._caches)
        with targets.lowering_for(target):
            return outside.equation(eqn, operands)

    def _lower(
        self,
        eqn: jex_core.JaxprEqn,
        operands: Sequence[Value],
        representations: Sequence[Representation],
    ) -> list[Value]:
        """Lowers an equation in the first of the representations that applies to it."""
        if self.target.is_consumer:
            # Other runtimes stumble over operands and results without elements.
            if _is_empty(eqn):
                return [self._nothing(var.aval) for var in eqn.outvars]
            operands = [
                self._nothing(var.aval) if _has_nothing(var) else x
                for x, var in zip(operands, eqn.invars, strict=True)
            ]
        outer = EQUATION.get()
        token = EQUATION.set(jax_compat.of_user(eqn, outer))
        of_parameters = OF_PARAMETERS.set(self.folder.are_of_parameters(operands))
        try:
            rule = self._rule(eqn)
            ctx = Context(eqn, self)
            for kind in representations:
                if kind.applies(ctx, rule, operands):
                    stored = [
                        kind.operand(rule, x, var.aval)
                        for x, var in zip(operands, eqn.invars, strict=True)
                    ]
                    results = kind.apply(ctx, rule, stored)
                    break
            if not eqn.primitive.multiple_results:
                results = [results]
            return [
                self._checked(ctx, result, var.aval)
                for result, var in zip(results, eqn.outvars, strict=True)
            ]
        except LoweringError as error:
            if error.located:
                raise
            message = self._described(eqn, outer, error.reason)
            raise type(error).with_location(message) from error
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            first_line = str(error).strip().split("\n")[0]
            reason = f"{type(error).__name__}: {first_line}"
            message = self._described(eqn, outer, reason)
            raise LoweringError.with_location(message) from error
        finally:
            OF_PARAMETERS.reset(of_parameters)
            EQUATION.reset(token)

    def _described(
        self, eqn: jex_core.JaxprEqn, outer: jex_core.JaxprEqn | None, reason: str
    ) -> str:
        """The message of an error, with the line of what is around an equation without one."""
        around = "" if outer is None else jax_compat.source_line(outer)
        return describe(eqn, self.target, reason, around=around or self._program.source)

    def _rule(self, eqn: jex_core.JaxprEqn) -> registry.Rule:
        rule = registry.rule_of(eqn, self.target)
        if rule is None:
            raise UnsupportedError(expansion.reason(eqn))
        if self.target.splits("complex64") and not rule.in_storage and has_complex(eqn):
            raise UnsupportedError(
                "it has no complex numbers. Compute with the real and the imaginary part"
            )
        return rule

    def _checked(self, ctx: Context, result: Value, aval: Any) -> Value:
        """Checks the dtype of a result, and tells TensorFlow the shape that JAX knows.

        A result that is smaller than that, because later ops broadcast it, is wrapped.
        """
        if not isinstance(result, tf.Tensor) or not hasattr(aval, "dtype"):
            return result
        if result.dtype != dtypes.to_tf(aval.dtype):
            raise TypeError(f"the rule returned {result.dtype.name}, not {aval.dtype}")
        shape = avals.physical_shape(aval)
        static = avals.static_shape(shape)
        if result.shape.rank is None or result.shape.as_list() != static:
            traits = registry.facts(ctx.eqn.primitive.name).traits
            if traits & _MAY_BE_PARTIAL and values.is_partial(result, static):
                return Broadcastable(result, lambda x: movement.broadcast(ctx, x, shape))
            result.set_shape(static)
        return result

    def call(self, jaxpr: Jaxpr, *operands: Value) -> list[Value]:
        """Lowers a jaxpr that may be a function of the graph; returns its results."""
        if modes.is_eager() or id(jaxpr) not in self._program.outlined:
            return self.run(jaxpr, *operands)
        return self._call_function(jaxpr, operands)

    def call_flat(self, flattened: Flattened, operands: Sequence[Value]) -> list[tf.Tensor]:
        """Calls the function of a program on vectors, which is one for all lengths."""
        length = {flattening.LENGTH: constant(math.prod(flattened.shape), "int32")}
        vectors = self._call_function(flattened.jaxpr, operands, length, flattened.key)
        return [tf.reshape(vector, integers(flattened.shape)) for vector in vectors]

    def lower(
        self,
        fun: Callable[..., Any],
        operands: Sequence[Value],
        operand_avals: Sequence[Any] | None,
        params: Mapping[str, Any],
        as_function: bool = False,
    ) -> Any:
        """Lowers a function written in JAX; results may be known. See `Context.lower`."""
        if operand_avals is None:
            operand_avals = [
                jax.ShapeDtypeStruct(x.shape, getattr(x.dtype, "as_numpy_dtype", x.dtype))
                for x in map(values.full, operands)
            ]
        structs = tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in operand_avals)
        jaxpr, is_single = self._traced(fun, structs, tuple(sorted(params.items())))
        in_graph = not modes.is_eager()
        try:
            if as_function and in_graph and not self.dimensions.variables:
                results = self._call_function(jaxpr, operands)
            else:
                results = self.run(jaxpr, *operands)
        except LoweringError as error:
            # The line in the decomposition means nothing to the user; theirs is added later.
            raise type(error)(error.reason) from error
        return results[0] if is_single else results

    def _traced(self, *decomposition: Any) -> tuple[jex_core.ClosedJaxpr, bool]:
        """A function of this package, traced and legalized; see `trace_ours`.

        What is made of a jaxpr of the user is kept for the user's program alone.
        """
        *_, params = decomposition
        if not any(True for _ in jaxprs_among(value for _, value in params)):
            jaxpr, is_single = trace_ours_once(*decomposition)
        else:
            jaxpr, is_single = self._caches.decompositions.get(
                decomposition, lambda: trace_ours(*decomposition)
            )
        return pipeline.legalized(jaxpr, self.target), is_single

    def as_function(
        self, eqn: jex_core.JaxprEqn, lower: Callable[..., Any], operands: Sequence[Value]
    ) -> list[tf.Tensor]:
        """Calls the function of an equation, made by `lower(interpreter, *operands)`."""
        operands = [
            x if values.is_small(x) else values.tensor(x, var.aval.dtype)
            for x, var in zip(operands, eqn.invars, strict=True)
        ]
        return self._functions.call(
            (self.target.name, id(eqn)),
            lambda variables, *operands: lower(self._with_dimensions(variables), *operands),
            operands,
            [var.aval for var in eqn.invars],
            self.dimensions.variables,
            eqn,
        )

    def _call_function(
        self,
        jaxpr: Jaxpr,
        operands: Sequence[Value],
        variables: Mapping[str, tf.Tensor] | None = None,
        key: Any = None,
    ) -> list[tf.Tensor]:
        """Calls a jaxpr as a function of the graph."""
        variables = self.dimensions.variables if variables is None else variables
        return self._functions.call(
            (self.target.name, id(jaxpr) if key is None else key),
            lambda variables, *operands: self._with_dimensions(variables).run_to_tensors(
                jaxpr, *operands
            ),
            operands,
            [var.aval for var in jaxpr.invars],
            variables,
            jaxpr,
        )

    def _with_dimensions(self, variables: Mapping[str, tf.Tensor]) -> "Interpreter":
        """Lowers the same program, where the dimension variables are other tensors."""
        return Interpreter(
            self.target, Dimensions(variables), self._program, self._caches, self._functions
        )

    def _nothing(self, aval: Any) -> Value:
        """An array without elements, of the shape and dtype of an abstract value."""
        if avals.is_static(aval.shape):
            return _empty(aval.shape, aval.dtype)
        return tf.zeros(self.dimensions.shape(aval.shape), dtypes.to_tf(aval.dtype))


def _constants(jaxpr: Jaxpr) -> Sequence[Any]:
    """The constants of a jaxpr; some bodies are open jaxprs, which have none."""
    return getattr(jaxpr, "consts", ())


def _is_empty(eqn: jex_core.JaxprEqn) -> bool:
    """Whether all results of an equation are without elements, and it has no effects."""
    return bool(eqn.outvars) and not eqn.effects and all(map(_has_nothing, eqn.outvars))


def _has_nothing(var: Any) -> bool:
    """Whether a variable is an array without elements."""
    return 0 in getattr(var.aval, "shape", ())


@functools.cache
def _empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array without elements; the same one each time, as results are folded by identity."""
    return np.zeros(shape, dtype)
