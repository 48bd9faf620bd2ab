"""Derivatives by the variables that TensorFlow functions read, in a program that calls them.

JAX takes derivatives by operands alone. Where TensorFlow asks for the gradient of a converted
function by such a variable, the program is traced once more from its jaxpr, with the values of
variables as arguments. The calls take them as operands, and JAX carries them into loops and
branches as it carries any array.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import tensorflow as tf
from jax import lax

from lowering import jax_compat, registry
from lowering.frontend import call_primitive, callee_transforms, staging
from lowering.frontend.callee_transforms import Mapped
from lowering.frontend.callees import Callee, Function
from lowering.ops.registration import attach, captured, recording
from lowering.passes.evaluation import as_traced, evaluate
from lowering.passes.jaxprs import Jaxpr, called_jaxprs

# A variable, as a key of dictionaries.
Reference = Any
# The values of variables.
Values = Mapping[Reference, jax.Array]


@dataclasses.dataclass(frozen=True)
class ByVariables:
    """A function that has derivatives by variables that it reads.

    Attributes:
      of: the function. It reads the variables itself.
      variables: the variables, whose values are operands behind those of the function.
    """

    of: Callee
    variables: tuple[Reference, ...]

    def __repr__(self) -> str:
        return repr(self.of)

    @property
    def root(self) -> Function:
        return self.of.root

    @property
    def arity(self) -> int:
        return self.of.arity + len(self.variables)

    def __call__(self, *operands: tf.Tensor) -> list[tf.Tensor]:
        given, values = operands[: self.of.arity], operands[self.of.arity :]
        return _by_values(self.of, given, values, [v.deref() for v in self.variables])


def _by_values(
    fun: Callable[..., list[tf.Tensor]],
    operands: Sequence[tf.Tensor],
    values: Sequence[tf.Tensor],
    variables: Sequence[tf.Variable],
) -> list[tf.Tensor]:
    """The results of a function; their gradients by the variables go to tensors of their values."""
    operands, values = captured(operands), captured(values)
    results = fun(*operands)
    floating = [i for i, x in enumerate(operands) if x.dtype.is_floating or x.dtype.is_complex]
    active = [j for j, y in enumerate(results) if y.dtype.is_floating or y.dtype.is_complex]

    def gradient(*given: tf.Tensor) -> list[tf.Tensor]:
        xs, cotangents = list(map(tf.identity, given[: len(operands)])), given[len(operands) :]
        sources = [*(xs[i] for i in floating), *variables]
        with recording():
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                returned = fun(*xs)
            targets = [returned[j] for j in active]
            return callee_transforms.gradients(tape, targets, sources, list(cotangents))

    def pull_back(*cotangents: tf.Tensor) -> list[tf.Tensor | None]:
        given = [*operands, *(cotangents[j] for j in active)]
        # The gradient reads the variables, too, and may be asked for its own.
        found = _by_values(gradient, given, values, variables)
        by_operand: list[tf.Tensor | None] = [None] * len(operands)
        for i, of_operand in zip(floating, found, strict=False):
            by_operand[i] = of_operand
        return [*by_operand, *found[len(floating) :]]

    return attach(results, [*operands, *values], pull_back)


def with_values(
    jaxpr: jex_core.ClosedJaxpr, avals: Sequence[Any], variables: Sequence[tf.Variable]
) -> tuple[tuple[tf.Variable, ...], jex_core.ClosedJaxpr]:
    """A program that has derivatives by variables, whose values are its first arguments.

    Args:
      jaxpr: the program, as JAX has traced it.
      avals: the abstract values of its arguments.
      variables: those by which derivatives are wanted.

    Returns:
      The variables by which there are derivatives, and the program. There are none by a variable
      that a function reads in a `while` loop, or inside of a derivative of the user's own, such as
      that of `jax.custom_vjp`, and none at all if TensorFlow cannot trace a function.
    """
    out_of_reach = set(_read_out_of_reach(jaxpr))
    found = {ref for eqn in _calls(jaxpr) for ref in _read(eqn)} - out_of_reach
    if any(_variables(eqn) is None for eqn in _calls(jaxpr)):
        found = set()  # A function that cannot be traced may read any of them.
    chosen = tuple(v for v in variables if v.ref() in found)

    def program(values: Sequence[jax.Array], *operands: jax.Array) -> list[jax.Array]:
        return _run({v.ref(): x for v, x in zip(chosen, values, strict=True)}, jaxpr, *operands)

    structs = [jax.ShapeDtypeStruct(v.shape, v.dtype.as_numpy_dtype) for v in chosen]
    return chosen, jax.make_jaxpr(program)(structs, *avals)


def _read(eqn: jex_core.JaxprEqn) -> list[Reference]:
    """The trainable variables that the function of a call reads."""
    return [v.ref() for v in _variables(eqn) or ()]


def _variables(eqn: jex_core.JaxprEqn) -> Sequence[tf.Variable] | None:
    return staging.variables(eqn.params["callee"], [var.aval for var in eqn.invars])


def _calls(jaxpr: Jaxpr) -> Iterator[jex_core.JaxprEqn]:
    """The calls of TensorFlow functions in a jaxpr, and in all that it calls."""
    for eqn in jaxpr.eqns:
        if eqn.primitive is call_primitive.PRIMITIVE:
            yield eqn
        for called in called_jaxprs(eqn):
            yield from _calls(called)


def _read_out_of_reach(jaxpr: Jaxpr) -> Iterator[Reference]:
    """The variables that are read where `_bind` cannot give their values."""
    for eqn in jaxpr.eqns:
        for called in called_jaxprs(eqn):
            if eqn.primitive.name in _BODIES or eqn.primitive.name in _CALLS:
                yield from _read_out_of_reach(called)
            else:
                yield from (ref for call in _calls(called) for ref in _read(call))


def _bind(values: Values, eqn: jex_core.JaxprEqn, operands: Sequence[Any]) -> Any:
    """What an equation computes; calls of functions that read variables take their values."""
    if eqn.primitive is call_primitive.PRIMITIVE:
        read = [ref for ref in _read(eqn) if ref in values]
        return _call(eqn, operands, {ref: values[ref] for ref in read})
    if any(True for x in called_jaxprs(eqn) for _ in _calls(x)):
        if eqn.primitive.name in _CALLS:
            called, given = registry.called(eqn, operands)
            return _run(values, called, *given)
        if eqn.primitive.name in _BODIES:
            run = functools.partial(_run, values)
            return _BODIES[eqn.primitive.name](run, operands, **eqn.params)
    return as_traced(eqn, operands)


def _run(values: Values, jaxpr: Jaxpr, *operands: Any) -> list[Any]:
    return evaluate(jaxpr, operands, functools.partial(_bind, values))


def _call(eqn: jex_core.JaxprEqn, operands: Sequence[Any], values: Values) -> Any:
    """A call with the values of variables as operands, behind those of the function."""
    params, count = eqn.params, eqn.params["callee"].root.arity
    transposed = params["transposed"]
    known = {
        "callee": _by_variables(params["callee"], tuple(values)),
        "transposed": transposed and _by_variables(transposed, tuple(values)),
        "results": tuple((var.aval.shape, var.aval.dtype) for var in eqn.outvars),
    }
    given = [*operands[:count], *values.values(), *operands[count:]]
    return eqn.primitive.bind(*given, **{**params, **known})


def _by_variables(callee: Any, variables: tuple[Reference, ...]) -> Callee:
    """A function, its derivative or what maps it, with operands for variables."""
    if not variables:
        return callee
    if isinstance(callee, Function):
        return ByVariables(callee, variables)
    changes: dict[str, Any] = {"of": _by_variables(callee.of, variables)}
    if isinstance(callee, Mapped):
        first, rest = callee.batched[: callee.root.arity], callee.batched[callee.root.arity :]
        changes["batched"] = (*first, *(False for _ in variables), *rest)
    return dataclasses.replace(callee, **changes)


def _scan(
    run: Callable[..., Any],
    operands: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    length: Any,
    reverse: bool,
    unroll: int,
    **params: Any,
) -> Any:
    num_consts, num_carry = jax_compat.scan_counts(params)
    consts, init = operands[:num_consts], operands[num_consts : num_consts + num_carry]

    def step(carry: Any, xs: Any) -> Any:
        results = run(jaxpr, *consts, *carry, *xs)
        return results[:num_carry], results[num_carry:]

    xs = list(operands[num_consts + num_carry :])
    carry, ys = lax.scan(step, list(init), xs, length, reverse, unroll)
    return [*carry, *ys]


def _cond(
    run: Callable[..., Any], operands: Sequence[Any], *, branches: Sequence[Jaxpr], **_: Any
) -> Any:
    index, *rest = operands
    return lax.switch(index, [functools.partial(run, branch) for branch in branches], *rest)


# Primitives that call a jaxpr once, and have no derivative of their own.
_CALLS = frozenset({"jit", "checkpoint", "remat2", "closed_call", "core_call"})
# How other primitives are traced again; `run(jaxpr, *operands)` traces what they run. JAX pulls
# nothing back through a `while`.
_BODIES: Mapping[str, Callable[..., Any]] = {"scan": _scan, "cond": _cond}
