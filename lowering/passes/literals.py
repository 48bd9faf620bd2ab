"""Gives literals the dtype and the shape that they get later, so that programs look like patterns.

It also gives them the numbers that JAX computes with.
"""

from typing import Any

import jax.extend.core as jex_core
import numpy as np

from lowering.passes.jaxprs import Jaxpr, is_variable
from lowering.passes.rewriting import Rewriter, without_unused
from lowering.registry import Trait, facts

_FLOATS = tuple(map(np.dtype, (np.float32, np.float64)))


def convert_literals(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces conversions of literals by converted literals, and broadcasts of broadcast ones.

    `jax.vmap` broadcasts once more what a function has broadcast.
    """
    if not any(map(_converts_literal, jaxpr.eqns)) and not _has_broadcasts_of_broadcasts(jaxpr):
        return jaxpr
    new = Rewriter(jaxpr)
    # By a variable: the literal that it repeats.
    repeated: dict[Any, jex_core.Literal] = {}
    for eqn in jaxpr.eqns:
        if _converts_literal(eqn):
            (outvar,) = eqn.outvars
            value = _value(eqn.invars[0]).astype(outvar.aval.dtype)
            new.replace([outvar], [jex_core.Literal(value, outvar.aval)])
            continue
        if eqn.primitive.name == "broadcast_in_dim" and len(eqn.invars) == 1:
            (atom,) = new.read(eqn.invars)
            literal = repeated.get(atom) if is_variable(atom) else atom
            if literal is not None:
                repeated[eqn.outvars[0]] = literal
                params = {**eqn.params, "broadcast_dimensions": ()}
                eqn = eqn.replace(invars=[literal], params=params)
        new.add(eqn)
    return without_unused(new.jaxpr())


def _has_broadcasts_of_broadcasts(jaxpr: Jaxpr) -> bool:
    broadcasts = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "broadcast_in_dim"]
    made = {eqn.outvars[0] for eqn in broadcasts}
    return any(is_variable(eqn.invars[0]) and eqn.invars[0] in made for eqn in broadcasts)


def flush_literals(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces subnormal literals of sums, products and extrema by zeros.

    XLA takes them for zero on the CPU, and so do most runtimes; onnxruntime computes with them.
    """
    if not any(map(_has_subnormal, jaxpr.eqns)):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        if _has_subnormal(eqn):
            eqn = eqn.replace(invars=[_flushed(x) if _is_subnormal(x) else x for x in eqn.invars])
        new.add(eqn)
    return new.jaxpr()


def _has_subnormal(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation computes with a subnormal literal."""
    return any(map(_is_subnormal, eqn.invars)) and bool(
        facts(eqn.primitive.name).traits & (Trait.MONOID | Trait.LINEAR)
    )


def _is_subnormal(atom: Any) -> bool:
    if not isinstance(atom, jex_core.Literal) or atom.aval.dtype not in _FLOATS:
        return False
    size = np.abs(_value(atom))
    return bool(size.ndim == 0 and 0 < size < np.finfo(size.dtype).smallest_normal)


def _flushed(atom: jex_core.Literal) -> jex_core.Literal:
    return jex_core.Literal(np.copysign(0, _value(atom)), atom.aval)


def _converts_literal(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation converts a scalar literal to a dtype that represents it exactly."""
    if eqn.primitive.name != "convert_element_type":
        return False
    (atom,) = eqn.invars
    if not isinstance(atom, jex_core.Literal) or atom.aval.shape:
        return False
    return _is_exact(_value(atom), eqn.outvars[0].aval.dtype)


def _value(atom: jex_core.Literal) -> np.ndarray:
    """A literal's number in its dtype; `val` may be a number of Python, which has more digits."""
    return np.asarray(atom.val, atom.aval.dtype)


def _is_exact(value: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a scalar is the same number in another dtype."""
    kinds = {np.dtype(value.dtype).kind, np.dtype(dtype).kind}
    if not kinds <= set("biuf"):
        return False
    with np.errstate(all="ignore"):
        there_and_back = value.astype(dtype).astype(value.dtype)
        return bool(np.array_equal(there_and_back, value, equal_nan=True))
