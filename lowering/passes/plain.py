"""Makes a jaxpr plain, so that rules and passes meet Python's own integers and NumPy's arrays.

JAX accepts NumPy integers as sizes, paddings and axes, and leaves them in parameters. Rules and
passes take whatever is no `int` there for a symbolic dimension. Constants may be arrays of JAX,
whose operators differ from those of NumPy, and depend on settings of JAX.
"""

import dataclasses
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import avals
from lowering.passes.everywhere import Everywhere, are_same


def plain(jaxpr: jex_core.ClosedJaxpr) -> jex_core.ClosedJaxpr:
    """A jaxpr whose parameters have no NumPy integers, and whose constants are arrays of NumPy.

    That holds for all jaxprs in it as well. A jaxpr that is plain is the same object as before.
    """
    return Everywhere(_with_plain_parameters, _with_plain_constants).jaxpr(jaxpr)


def _with_plain_constants(jaxpr: Any) -> Any:
    consts = getattr(jaxpr, "consts", ())
    arrays = list(map(_array, consts))
    return jaxpr if are_same(arrays, consts) else jex_core.ClosedJaxpr(jaxpr.jaxpr, arrays)


def _array(const: Any) -> Any:
    """A constant as a NumPy array; PRNG keys, which NumPy does not know, stay as they are."""
    is_array = isinstance(const, jax.Array) and not avals.is_key(const.dtype)
    return np.asarray(const) if is_array else const


def _with_plain_parameters(eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
    params = {name: _plain_value(value) for name, value in eqn.params.items()}
    is_same = are_same(params.values(), eqn.params.values())
    return eqn if is_same else eqn.replace(params=params)


def _plain_value(value: Any) -> Any:
    """A parameter, or a part of one, that is no jaxpr; the same object if it is plain."""
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, tuple | list):
        items = list(map(_plain_value, value))
        if are_same(items, value):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if f.init}
        changed = {name: _plain_value(field) for name, field in fields.items()}
        is_same = are_same(changed.values(), fields.values())
        return value if is_same else dataclasses.replace(value, **changed)
    return value
