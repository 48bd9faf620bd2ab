"""`call_tf`, the primitive: what JAX's transformations make of a call of a TensorFlow function.

An equation is linear in its last `linear` operands. A call of the user's function is linear in
none. A call of its derivative is linear in the tangents, and its transpose calls the function that
takes cotangents.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from lowering import jax_compat
from lowering.frontend import callee_transforms, callees, exchange, staging
from lowering.frontend.callee_transforms import Mapped
from lowering.frontend.callees import Callee, Function
from lowering.registry import new_primitive

PRIMITIVE = new_primitive("call_tf")


def call(
    function: Function, operands: Sequence[jax.Array], effect: str | None
) -> tuple[list[Any], Any]:
    """Calls the function of the user while JAX is tracing.

    Args:
      function: the function.
      operands: the leaves of its arguments.
      effect: None, "unordered" or "ordered": whether a call may do something beside returning
        results, and whether these calls have to stay in their order.

    Returns:
      The leaves of its results, and their structure.
    """
    operand_avals = list(map(jax.typeof, operands))
    declared = function.declared
    if declared is not None:
        staging.check(function, operand_avals)
        return _bind(operands, function, effect=effect, results=declared.avals), declared.tree
    with callees.observed(function) as structures:
        results = _bind(operands, function, effect=effect)
    return results, structures[0] if structures else staging.structure(function, operand_avals)


def _bind(
    operands: Sequence[Any],
    callee: Callee,
    *,
    effect: str | None = None,
    results: Sequence[Any] | None = None,
    linear: int = 0,
    transposed: Callee | None = None,
) -> list[Any]:
    """Calls a function.

    Args:
      operands: its operands.
      callee: the function.
      effect: as for `call`.
      results: the abstract values of its results; None if they are not known yet.
      linear: in how many of its last operands it is linear.
      transposed: the function from its other operands and from cotangents of its results to the
        cotangents of those.
    """
    known = None if results is None else tuple(map(_shape_and_dtype, results))
    return PRIMITIVE.bind(
        *operands, callee=callee, effect=effect, results=known, linear=linear, transposed=transposed
    )


def _run(*operands: Any, callee: Callee, **_: Any) -> list[jax.Array]:
    return exchange.run(callee, operands)


def _results(*operands: Any, callee: Callee, results: Any, **_: Any) -> Sequence[Any]:
    if results is None:
        return staging.results(callee, operands)
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results]


def _effect(*operands: Any, callee: Callee, effect: str | None, **_: Any) -> str | None:
    return staging.effect(callee, operands, effect)


def _differentiate(
    primals: Sequence[Any], tangents: Sequence[Any], *, callee: Callee, linear: int, **params: Any
) -> tuple[Sequence[Any], Sequence[Any]]:
    outs = PRIMITIVE.bind(*primals, callee=callee, linear=linear, **params)
    active = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
    floating = tuple(j for j, y in enumerate(outs) if callee_transforms.is_inexact(y.dtype))
    out_tangents: list[Any] = [None] * len(outs)
    if not active or not floating:
        return outs, out_tangents
    results = [jax.typeof(outs[j]) for j in floating]
    first = len(primals) - linear
    if min(active) >= first:
        # A function that is linear in the operands with tangents is its own derivative.
        pairs = zip(primals[first:], tangents[first:], strict=True)
        changes = [jnp.zeros_like(x) if t is None else t for x, t in pairs]
        transposed = params["transposed"]
        pushed = _bind(
            [*primals[:first], *changes],
            callee,
            results=results,
            linear=linear,
            transposed=transposed,
        )
    else:
        pushed = _bind(
            [*primals, *(tangents[i] for i in active)],
            callee_transforms.tangent(callee, active, floating),
            results=results,
            linear=len(active),
            transposed=callee_transforms.cotangent(callee, active, floating),
        )
    for j, tangent in zip(floating, pushed, strict=True):
        out_tangents[j] = tangent
    return outs, out_tangents


def _transpose(
    cotangents: Sequence[Any],
    operands: Sequence[Any],
    linear_avals: Sequence[Any],
    *,
    callee: Callee,
    transposed: Callee | None,
    **_: Any,
) -> Sequence[Any]:
    if transposed is None:
        raise NotImplementedError(
            f"JAX cannot transpose a call of {callee}, as it does not know whether it is linear. "
            "Use jax.vjp, whose result is the transpose of a linear function"
        )
    return _bind(
        [*operands, *cotangents],
        transposed,
        results=linear_avals,
        linear=len(cotangents),
        transposed=callee,
    )


def _batch(
    size: Any,
    operands: Sequence[Any],
    batched: Sequence[bool],
    *,
    callee: Callee,
    linear: int,
    transposed: Callee | None,
    results: Any,
    effect: str | None,
) -> tuple[Sequence[Any], Sequence[int | None]]:
    if effect == "ordered":
        raise ValueError(
            "JAX cannot map an ordered call: call_tf with ordered=True has no vmap. Use a loop "
            "such as jax.lax.map"
        )
    first = len(operands) - linear
    mapped_transposed = None
    if transposed is not None:
        of_cotangents = [True] * (transposed.arity - first)
        shared = frozenset(i - first for i in range(first, len(operands)) if not batched[i])
        mapped_transposed = Mapped(transposed, (*batched[:first], *of_cotangents), shared)
    if results is not None:
        results = tuple(((size, *shape), dtype) for shape, dtype in results)
    outs = PRIMITIVE.bind(
        *operands,
        callee=Mapped(callee, tuple(batched)),
        linear=linear,
        transposed=mapped_transposed,
        results=results,
        effect=effect,
    )
    return outs, [0] * len(outs)


def _shape_and_dtype(aval: Any) -> Any:
    return aval.shape, aval.dtype


jax_compat.define_call(
    PRIMITIVE,
    run=_run,
    results=_results,
    effect=_effect,
    differentiate=_differentiate,
    transpose=_transpose,
    batch=_batch,
    compile=staging.compiled,
)
