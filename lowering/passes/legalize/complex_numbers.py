"""Complex numbers are split into real and imaginary parts, for targets that have no others.

A primitive that moves elements, or is linear, is applied to the real parts and to the imaginary
ones. Others have decompositions or legalizations in JAX, which are split in turn, down to
`complex`, `real` and `imag`, of which nothing is left.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import registry
from lowering.avals import is_complex, real_dtype, with_dtypes
from lowering.passes.legalize.splitting import Legalization, Walk
from lowering.registry import Trait
from lowering.targets import Target


def has_complex(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation has complex numbers as operands or results."""
    return any(map(_is_complex, (*eqn.invars, *eqn.outvars)))


class _Split(Walk):
    """A jaxpr that is being split."""

    @staticmethod
    def is_illegal(aval: Any, target: Target) -> bool:
        return is_complex(getattr(aval, "dtype", None))

    @staticmethod
    def legal_avals(aval: Any, target: Target) -> Sequence[Any]:
        if not is_complex(getattr(aval, "dtype", None)):
            return (aval,)
        return (jax.core.ShapedArray(aval.shape, real_dtype(aval.dtype)),) * 2

    @staticmethod
    def legal_arrays(x: Any, aval: Any, target: Target) -> Sequence[Any]:
        if not is_complex(getattr(aval, "dtype", None)):
            return (x,)
        x = np.asarray(x, aval.dtype)
        return x.real.copy(), x.imag.copy()

    def legalize(self, eqn: jex_core.JaxprEqn) -> None:
        if eqn.primitive is lax.complex_p:
            self.replace(eqn, self.read(eqn.invars))
        elif eqn.primitive in (lax.real_p, lax.imag_p):
            self.replace(eqn, [self.read(eqn.invars)[eqn.primitive is lax.imag_p]])
        elif (fun := self._decomposition(eqn)) is not None:
            self.decompose(eqn, fun)
        elif registry.facts(eqn.primitive.name).traits & (Trait.SELECTS | Trait.LINEAR):
            self.apply_to_parts(eqn, with_dtypes(eqn.params, _real_dtype))
        else:
            self.add_unsplit(eqn)

    def _decomposition(self, eqn: jex_core.JaxprEqn) -> Callable[..., Any] | None:
        """The function of JAX that says what an equation computes; None if there is none."""
        dtypes = [x.aval.dtype for x in (*eqn.invars, *eqn.outvars) if _is_complex(x)]
        rule = registry.rule_of(eqn, self.target, *dtypes[:1] or [np.dtype(np.complex64)])
        return rule.fun if rule is not None and rule.is_decomposition else None


# Two values, the parts, in place of each complex one.
split_complex = Legalization(_Split)


def _is_complex(atom: Any) -> bool:
    return is_complex(getattr(atom.aval, "dtype", None))


def _real_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of parts, if it is one of complex numbers; else itself."""
    return real_dtype(dtype) if is_complex(dtype) else dtype
