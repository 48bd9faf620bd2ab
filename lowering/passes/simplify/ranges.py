"""The least and the greatest number that the elements of each variable may be."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering import narrow_formats
from lowering.registry import Trait, has_trait

# The least and the greatest number; Python integers for integers and bools.
Range: TypeAlias = tuple[Any, Any]

_REAL = np.float16, np.float32, np.float64


class Ranges:
    """The ranges of the variables of a jaxpr; an element may be NaN all the same."""

    def __init__(self) -> None:
        self._known: dict[jex_core.Var, Range] = {}

    def add(self, eqn: jex_core.JaxprEqn) -> None:
        """Finds the ranges of the results of an equation, after those that make its operands."""
        name = eqn.primitive.name
        if name == "top_k":
            self._add_places(eqn)
        if len(eqn.outvars) != 1:
            return
        (outvar,) = eqn.outvars
        widest = _of_dtype(outvar.aval)
        if widest is None:
            return
        if name in _RANGES:
            found = _RANGES[name](eqn, [self.of(atom) for atom in eqn.invars])
        elif has_trait(name, Trait.SELECTS):
            same = [x for x in eqn.invars if getattr(x.aval, "dtype", None) == outvar.aval.dtype]
            found = _union([self.of(atom) for atom in same])
        else:
            return
        # Numbers beyond the dtype wrap around.
        if found is not None and widest[0] <= found[0] <= found[1] <= widest[1]:
            self._known[outvar] = found

    def _add_places(self, top_k: jex_core.JaxprEqn) -> None:
        """The places of the greatest elements are indices of these."""
        (x,), places = top_k.invars, top_k.outvars[1]
        size = x.aval.shape[top_k.params["axis"]]
        if isinstance(size, int) and size > 0:
            self._known[places] = 0, size - 1

    def of(self, atom: Any) -> Range | None:
        """The range of an atom; None if its dtype has no order or is not known here."""
        if not isinstance(atom, jex_core.Literal):
            return self._known.get(atom) or _of_dtype(atom.aval)
        value = np.asarray(atom.val)
        if _of_dtype(atom.aval) is None or value.ndim or value != value:
            return _of_dtype(atom.aval)
        return value.item(), value.item()


def _of_dtype(aval: Any) -> Range | None:
    dtype = getattr(aval, "dtype", None)
    if dtype == np.bool_:
        return 0, 1
    if dtype in _REAL:
        return -math.inf, math.inf
    if isinstance(dtype, np.dtype) and dtype.kind in "iu":
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return None


def _union(ranges: Sequence[Range | None]) -> Range | None:
    known = [r for r in ranges if r is not None]
    if not known or len(known) < len(ranges):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _is_float(eqn: jex_core.JaxprEqn) -> bool:
    return jnp.issubdtype(eqn.outvars[0].aval.dtype, np.floating)


def _constant(low: Any, high: Any) -> Callable[..., Range | None]:
    return lambda eqn, ranges: (low, high) if _is_float(eqn) else None


def _add(eqn, ranges):
    x, y = ranges
    return None if None in ranges else (_sum(x[0], y[0], -math.inf), _sum(x[1], y[1], math.inf))


def _sub(eqn, ranges):
    x, y = ranges
    return None if None in ranges else (_sum(x[0], -y[1], -math.inf), _sum(x[1], -y[0], math.inf))


def _sum(x, y, otherwise):
    return otherwise if abs(x) == abs(y) == math.inf and x != y else x + y


def _without_sign(eqn, ranges):
    """Sums, products and quotients of floats that are not negative are not negative."""
    return (0.0, math.inf) if _is_float(eqn) and all(r and r[0] >= 0 for r in ranges) else None


def _max(eqn, ranges):
    x, y = ranges
    return None if None in ranges else (max(x[0], y[0]), max(x[1], y[1]))


def _min(eqn, ranges):
    x, y = ranges
    return None if None in ranges else (min(x[0], y[0]), min(x[1], y[1]))


def _clamp(eqn, ranges):
    if None in ranges:
        return None
    low, x, high = ranges
    return _min(eqn, [_max(eqn, [low, x]), high])


def _position(eqn, size):
    return (0, size - 1) if isinstance(size, int) and size > 0 and not _is_float(eqn) else None


def _argmax(eqn, ranges):
    return _position(eqn, eqn.invars[0].aval.shape[eqn.params["axes"][0]])


def _iota(eqn, ranges):
    return _position(eqn, eqn.params["shape"][eqn.params["dimension"]])


def _remainder(eqn, ranges):
    """A remainder by a positive integer; unlike `rem`, `floor_mod` has the sign of the divisor."""
    x, y = ranges
    if _is_float(eqn) or y is None or y[0] <= 0:
        return None
    is_positive = eqn.primitive.name == "floor_mod" or (x is not None and x[0] >= 0)
    return (0, y[1] - 1) if is_positive else None


# All integers up to this one are numbers of float16.
_LARGEST_EXACT = 2048


def _convert(eqn, ranges):
    """A conversion from integers, to floats only where it is exact."""
    (x,) = ranges
    is_exact = x is not None and max(map(abs, x)) <= _LARGEST_EXACT
    return (
        x if eqn.invars[0].aval.dtype.kind in "biu" and (is_exact or not _is_float(eqn)) else None
    )


def _integer_pow(eqn, ranges):
    return (0.0, math.inf) if _is_float(eqn) and eqn.params["y"] % 2 == 0 else None


def _rounded(eqn, ranges):
    """Floats rounded up or down."""
    (x,) = ranges
    if x is None or not math.isfinite(x[0]) or not math.isfinite(x[1]):
        return x
    return float(math.floor(x[0])), float(math.ceil(x[1]))


def _fit(eqn, ranges):
    return narrow_formats.limits(eqn.params["dtype"])


def _compare(eqn, ranges):
    """A comparison that is decided by the ranges of its operands."""
    x, y = ranges
    if None in ranges:
        return None
    name = eqn.primitive.name
    if name in ("gt", "ge"):
        x, y, name = y, x, {"gt": "lt", "ge": "le"}[name]
    is_true = x[1] < y[0] if name == "lt" else x[1] <= y[0]
    is_false = x[0] >= y[1] if name == "lt" else x[0] > y[1]
    return (int(is_true), int(not is_false)) if is_true or is_false else None


_NOT_NEGATIVE = _constant(0.0, math.inf)

_RANGES: dict[str, Callable[[jex_core.JaxprEqn, list[Range | None]], Range | None]] = {
    "exp": _NOT_NEGATIVE,
    "exp2": _NOT_NEGATIVE,
    "square": _NOT_NEGATIVE,
    "sqrt": _NOT_NEGATIVE,
    "rsqrt": _NOT_NEGATIVE,
    "abs": _NOT_NEGATIVE,
    "integer_pow": _integer_pow,
    "logistic": _constant(0.0, 1.0),
    "softmax": _constant(0.0, 1.0),
    "add": _add,
    "sub": _sub,
    "mul": _without_sign,
    "div": _without_sign,
    "reduce_sum": _without_sign,
    "reduce_max": lambda eqn, ranges: ranges[0] if 0 not in eqn.invars[0].aval.shape else None,
    "reduce_min": lambda eqn, ranges: ranges[0] if 0 not in eqn.invars[0].aval.shape else None,
    "max": _max,
    "min": _min,
    "clamp": _clamp,
    "argmax": _argmax,
    "argmin": _argmax,
    "iota": _iota,
    "rem": _remainder,
    "floor_mod": _remainder,
    "convert_element_type": _convert,
    "fit": _fit,
    **dict.fromkeys(("round", "floor", "ceil"), _rounded),
    **dict.fromkeys(("lt", "le", "gt", "ge"), _compare),
}
