"""Gives literals the dtype that they are converted to, so that programs look like patterns."""

import jax.extend.core as jex_core
import numpy as np

from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter


def convert_literals(jaxpr: Jaxpr) -> Jaxpr:
    """Without conversions of literals: `convert_element_type` of one is a literal."""
    if not any(map(_converts_literal, jaxpr.eqns)):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        if _converts_literal(eqn):
            (outvar,) = eqn.outvars
            value = _value(eqn.invars[0]).astype(outvar.aval.dtype)
            new.replace([outvar], [jex_core.Literal(value, outvar.aval)])
        else:
            new.add(eqn)
    return new.jaxpr()


def _converts_literal(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation converts a number to a type that has it."""
    if eqn.primitive.name != "convert_element_type":
        return False
    (atom,) = eqn.invars
    if not isinstance(atom, jex_core.Literal) or atom.aval.shape:
        return False
    return _is_exact(_value(atom), eqn.outvars[0].aval.dtype)


def _value(atom: jex_core.Literal) -> np.ndarray:
    """The number that a literal is; its `val` may be one of Python, which has more digits."""
    return np.asarray(atom.val, atom.aval.dtype)


def _is_exact(value: np.ndarray, dtype: np.dtype) -> bool:
    """Whether a scalar is the same number in another dtype."""
    kinds = {np.dtype(value.dtype).kind, np.dtype(dtype).kind}
    if not kinds <= set("biuf"):
        return False
    with np.errstate(all="ignore"):
        return bool(value.astype(dtype).astype(value.dtype) == value)
