"""Walks a jaxpr and calls one rule per equation.

Values are TensorFlow tensors, or NumPy arrays where they are known at lowering time. An equation
on known values is folded; a jaxpr that is called several times becomes one function of the graph.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
import tensorflow as tf

from lowering import jax_compat, registry
from lowering.core.context import Context, describe
from lowering.errors import LoweringError, UnsupportedError
from lowering.formats import keys, narrow, rounding
from lowering.ops import broadcasting, constant, dims, dtypes, integers
from lowering.ops.broadcasting import Broadcastable
from lowering.passes import flattening, fusion
from lowering.passes.flattening import Flattened
from lowering.passes.trace import Program, is_long
from lowering.targets import Target
from lowering.tensors import movement

Value = Any  # tf.Tensor, Broadcastable, np.ndarray or an array of PRNG keys.

# A shorter body costs less as equations in place than as a function.
_FUNCTION_EQUATIONS = 12

_NOT_IN_SCOPE = r"[^A-Za-z0-9_.\\/-]"


class Interpreter:
    """Lowers the equations of one program for one target."""

    def __init__(
        self,
        target: Target,
        dimensions: dims.Dimensions,
        program: Program,
    ):
        self.target = target
        self.dimensions = dimensions
        self._program = program
        self._folder = program.folder
        self._calls = program.calls
        self._functions: dict[Any, Any] = {}

    def with_dimensions(self, dimensions: dims.Dimensions) -> Interpreter:
        """Lowers the same program, where the dimension variables are other tensors."""
        return Interpreter(self.target, dimensions, self._program)

    def run(self, jaxpr: jex_core.ClosedJaxpr, *operands: Value) -> list[Value]:
        """Lowers a closed jaxpr in place; returns its results."""
        env: dict[jex_core.Var, Value] = {}
        # Some bodies are open jaxprs; those have no constants.
        env.update(zip(jaxpr.constvars, getattr(jaxpr, "consts", ()), strict=True))
        env.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            is_literal = isinstance(atom, jex_core.Literal)
            return self._folder.literal(atom) if is_literal else env[atom]

        graph_scope = None if tf.executing_eagerly() else _current_scope()
        with contextlib.ExitStack() as stack:
            current = ""
            for eqn in fusion.fused(jaxpr):
                scope = jax_compat.name_stack(eqn)
                if scope != current and graph_scope is not None:
                    stack.close()
                    stack.enter_context(_name_scope(graph_scope, scope))
                    current = scope
                operands = [read(atom) for atom in eqn.invars]
                env.update(zip(eqn.outvars, self._equation(eqn, operands), strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def run_to_tensors(self, jaxpr: jex_core.ClosedJaxpr, *operands: Value) -> list[tf.Tensor]:
        """Lowers a closed jaxpr in place; returns its results, known ones as constants."""
        results = self.run(jaxpr, *operands)
        return [
            to_tensor(x, getattr(var.aval, "dtype", None))
            for x, var in zip(results, jaxpr.outvars, strict=True)
        ]

    def call(self, jaxpr: jex_core.ClosedJaxpr, *operands: Value) -> list[Value]:
        """Lowers a closed jaxpr that may be called elsewhere too; returns its results."""
        if tf.executing_eagerly():
            return self.run(jaxpr, *operands)
        flattened = flattening.flatten(jaxpr)
        if flattened is not None:
            return [self._call_flattened(flattened, operands)]
        often = self._calls[id(jaxpr)] > 1 and is_long(jaxpr, _FUNCTION_EQUATIONS)
        return self._call_function(jaxpr, operands) if often else self.run(jaxpr, *operands)

    def lower(
        self,
        fun: Callable[..., Any],
        operands: Sequence[Value],
        avals: Sequence[Any] | None,
        params: dict[str, Any],
        as_function: bool = False,
    ) -> Any:
        """Lowers a function written in JAX; results may be known. See `Context.lower`."""
        if avals is None:
            avals = [jax.ShapeDtypeStruct(x.shape, _jax_dtype(x)) for x in operands]
        avals = tuple(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals)
        jaxpr, is_single = _trace(fun, avals, tuple(sorted(params.items())))
        in_place = tf.executing_eagerly() or self.dimensions.variables or not as_function
        try:
            if in_place:
                results = self.run(jaxpr, *operands)
            else:
                results = self._call_function(jaxpr, operands)
        except LoweringError as error:
            # The line in the decomposition means nothing to the user; theirs is added later.
            raise type(error)(error.reason) from error
        return results[0] if is_single else results

    def _equation(self, eqn: jex_core.JaxprEqn, operands: list[Value]) -> Sequence[Value]:
        if all(_is_known(operand) for operand in operands):
            folded = self._folder.fold(
                eqn, operands, lambda: map(full, self._lower_equation(eqn, operands))
            )
            if folded is not None:
                return folded
        return self._lower_equation(eqn, operands)

    def _lower_equation(self, eqn: jex_core.JaxprEqn, operands: list[Value]) -> Sequence[Value]:
        dtype = getattr(eqn.invars[0].aval, "dtype", None) if eqn.invars else None
        rule = registry.lookup(eqn.primitive.name, self.target, dtype)
        if rule is None:
            reason = registry.refusal(eqn.primitive.name) or "no rule is known for it"
            raise UnsupportedError(describe(eqn, self.target, reason), located=True)
        try:
            results = self._apply(rule, eqn, operands)
        except LoweringError as error:
            if error.located:
                raise
            raise type(error)(describe(eqn, self.target, error.reason), located=True) from error
        except (tf.errors.OpError, ValueError, TypeError, NotImplementedError) as error:
            reason = f"{type(error).__name__}: {_first_line(error)}"
            raise LoweringError(describe(eqn, self.target, reason), located=True) from error
        if not eqn.primitive.multiple_results:
            results = [results]
        lazy = eqn.primitive.name in broadcasting.LAZY
        return [
            self._checked(result, var.aval, lazy)
            for result, var in zip(results, eqn.outvars, strict=True)
        ]

    def _apply(self, rule: registry.Rule, eqn: jex_core.JaxprEqn, operands: list[Value]) -> Any:
        if narrow.is_on_narrow(eqn) and not rule.keys:
            operands = [
                narrow.known(x, var.aval.dtype) if _is_known(x) else x
                for x, var in zip(operands, eqn.invars, strict=True)
            ]
            results = narrow.apply(self._lower_equation, self.lower, eqn, operands)
            return results if eqn.primitive.multiple_results else results[0]
        if rule.is_decomposition:
            avals = [var.aval for var in eqn.invars]
            return self.lower(rule.fun, operands, avals, eqn.params)
        operands = [
            _smallest(x)
            if broadcasting.takes_partial(eqn.primitive.name, position)
            and len(getattr(var.aval, "shape", ())) <= movement.MAX_GROUPS
            else x
            for position, (x, var) in enumerate(zip(operands, eqn.invars, strict=True))
        ]
        operands = [
            _as_array(x, var.aval)
            if rule.keep_constants and _is_known(x)
            else to_tensor(x, getattr(var.aval, "dtype", None))
            for x, var in zip(operands, eqn.invars, strict=True)
        ]
        if keys.has_keys(eqn) and not rule.keys:
            return keys.apply_to_integers(
                lambda eqn, *operands: rule.fun(Context(eqn, self), *operands, **eqn.params),
                eqn,
                operands,
            )
        return rule.fun(Context(eqn, self), *operands, **eqn.params)

    def _checked(self, result: Value, aval: Any, lazy: bool) -> Value:
        """Holds a rule to its abstract value, and tells TensorFlow the shape that JAX knows.

        A result that may be left to be broadcast is wrapped if it is smaller.
        """
        if not isinstance(result, tf.Tensor) or not hasattr(aval, "dtype"):
            return result
        if result.dtype != dtypes.to_tf(aval.dtype):
            raise AssertionError(f"rule returned {result.dtype.name}, not {aval.dtype}")
        shape = dims.static_shape(keys.physical_shape(aval))
        if result.shape.rank is None or result.shape.as_list() != shape:
            if lazy and broadcasting.is_partial(result, shape):
                return Broadcastable(
                    result, lambda x: self._broadcast(x, keys.physical_shape(aval))
                )
            result.set_shape(shape)
        return result

    def _broadcast(self, x: tf.Tensor, shape: Sequence[Any]) -> tf.Tensor:
        return movement.broadcast(self.dimensions, x, shape)

    def _call_function(
        self, jaxpr: jex_core.ClosedJaxpr, operands: Sequence[Value]
    ) -> list[tf.Tensor]:
        # A known operand specializes the function, so that its body can be folded.
        known = tuple(_fingerprint(x) if _is_known(x) else None for x in operands)
        # The values of dimension variables are tensors of the graph that it is made in.
        graph = tf.compat.v1.get_default_graph() if self.dimensions.variables else None
        key = (id(jaxpr), known, id(graph))
        if key not in self._functions:
            function = tf.function(self._specialized(jaxpr, operands), autograph=False)
            concrete = function.get_concrete_function(*_specs(jaxpr, operands))
            # They are kept so that their identities stay their own.
            self._functions[key] = concrete, jaxpr, graph
        return list(self._functions[key][0](*_unknown(operands)))

    def _call_flattened(self, flattened: Flattened, operands: Sequence[Value]) -> tf.Tensor:
        """Calls a function for all shapes."""
        known = tuple(_fingerprint(x) if _is_known(x) else None for x in operands)
        key = (flattened.key, known)
        if key not in self._functions:

            @tf.function(autograph=False)
            def function(length, *tensors):
                within = self.with_dimensions(dims.Dimensions({flattening.LENGTH: length}))
                (vector,) = within._specialized(flattened.jaxpr, operands)(*tensors)
                return vector

            specs = [tf.TensorSpec((), tf.int32), *_specs(flattened.jaxpr, operands)]
            self._functions[key] = function.get_concrete_function(*specs)
        length = constant(math.prod(flattened.shape), np.int32)
        vector = self._functions[key](length, *_unknown(operands))
        return tf.reshape(vector, integers(flattened.shape))

    def _specialized(
        self, jaxpr: jex_core.ClosedJaxpr, operands: Sequence[Value]
    ) -> Callable[..., list[tf.Tensor]]:
        """What a jaxpr does to operands that are not known."""

        def function(*tensors):
            rest = iter(tensors)
            return self.run_to_tensors(
                jaxpr, *(x if _is_known(x) else next(rest) for x in operands)
            )

        return function


def _unknown(operands: Sequence[Value]) -> list[tf.Tensor]:
    return [full(x) for x in operands if not _is_known(x)]


def _specs(jaxpr: jex_core.ClosedJaxpr, operands: Sequence[Value]) -> list[tf.TensorSpec]:
    """What tensors a function takes for the operands that are not known."""
    return [
        tf.TensorSpec(
            dims.static_shape(keys.physical_shape(var.aval)), dtypes.to_tf(var.aval.dtype)
        )
        for var, x in zip(jaxpr.invars, operands, strict=True)
        if not _is_known(x)
    ]


def to_tensor(value: Value, dtype: Any) -> tf.Tensor:
    """A value as a tensor: keys and narrow numbers as they are held, float0 as int32 zeros."""
    value = full(value)
    if isinstance(value, tf.Tensor) or dtype is None:
        return value
    if dtypes.is_key(dtype):
        return constant(keys.words(value))
    if dtype == dtypes.FLOAT0:
        return constant(np.zeros(np.shape(value), np.int32))
    return constant(value, dtypes.to_tf(dtype))


def _smallest(value: Value) -> Value:
    """A value of which a rule need only see what it is broadcast from."""
    if isinstance(value, Broadcastable):
        return value.tensor
    return broadcasting.distinct(value) if isinstance(value, np.ndarray) else value


def full(value: Value) -> Value:
    """A value that is not left to be broadcast."""
    return value.full() if isinstance(value, Broadcastable) else value


def _as_array(value: Value, aval: Any) -> Value:
    """A known value as a rule takes it: PRNG keys and narrow numbers as they are held."""
    dtype = getattr(aval, "dtype", None)
    if dtypes.is_narrow(dtype):
        return rounding.hold(value, dtype)
    return keys.words(value) if dtypes.is_key(dtype) else value


def _is_known(value: Value) -> bool:
    return not isinstance(value, tf.Tensor | Broadcastable)


def _jax_dtype(value: Value) -> np.dtype:
    return value.dtype.as_numpy_dtype if isinstance(value, tf.Tensor) else value.dtype


def _fingerprint(value: Value) -> Any:
    dtype = getattr(value, "dtype", None)
    array = keys.words(value) if dtypes.is_key(dtype) else np.asarray(value)
    return (str(dtype), array.shape, array.tobytes())


@functools.lru_cache(maxsize=4096)
def _trace(fun: Callable[..., Any], avals: Any, params: Any) -> tuple[Any, bool]:
    """Traces a function written in JAX; returns its jaxpr and whether it has a single result."""
    with jax_compat.enable_x64():
        traced = jax.jit(lambda *operands: fun(*operands, **dict(params))).trace(*avals)
    is_single = jax.tree_util.treedef_is_leaf(traced.out_tree)
    return jax_compat.eliminate_dead_code(traced.jaxpr), is_single


def _current_scope() -> str:
    scope = tf.compat.v1.get_default_graph().get_name_scope()
    return f"{scope}/" if scope else ""


def _name_scope(graph_scope: str, stack: str) -> contextlib.AbstractContextManager[Any]:
    if not stack:
        return contextlib.nullcontext()
    # A trailing slash re-enters the scope; without it TensorFlow would make a new one.
    return tf.name_scope(f"{graph_scope}{re.sub(_NOT_IN_SCOPE, '_', stack)}/")


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]
