"""Programs that treat all elements alike, as programs on vectors of any length.

What `jax.random` computes is of that kind: random bits in row-major order, and what each of them
becomes. Two calls that differ in shape only thus become calls of one function.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat
from lowering.ops import dims, dtypes
from lowering.ops.broadcasting import ELEMENTWISE

# The name of the length.
LENGTH = "n"

# Where rules choose between ways for small and for large arrays.
SMALL = 4095

# Primitives that treat all elements alike, where no dimension is added or lost.
_ELEMENTWISE = ELEMENTWISE | {"bitcast_convert_type", "clamp", "nextafter"}

_SMALL_LENGTH = jax.export.symbolic_shape(LENGTH, constraints=[f"{LENGTH} <= {SMALL}"])
_LARGE_LENGTH = jax.export.symbolic_shape(LENGTH, constraints=[f"{LENGTH} >= {SMALL + 1}"])


@dataclasses.dataclass(frozen=True)
class Flattened:
    """A program on vectors.

    Attributes:
      jaxpr: the program; its length is the dimension variable `LENGTH`, its result is a vector.
      shape: the shape of the result of the program that it was made of.
      key: hashable; programs with the same key do the same.
    """

    jaxpr: jex_core.ClosedJaxpr
    shape: tuple[int, ...]
    key: Any


def flatten(jaxpr: jex_core.ClosedJaxpr) -> Flattened | None:
    """A program with one result on vectors, or None if it is not of that kind.

    It draws random bits by one key, and its other operands are of size one.

    Args:
      jaxpr: a closed jaxpr; what it calls is taken in.
    """
    if len(jaxpr.outvars) != 1:
        return None
    shape = getattr(jaxpr.outvars[0].aval, "shape", ())
    if not dims.is_static(shape) or math.prod(shape) <= 1:
        return None
    return _Flattening(shape).program(jaxpr)


class _DifferentError(Exception):
    """An equation does not treat all elements alike."""


class _Flattening:
    """Makes a program on vectors of one on arrays of a shape."""

    def __init__(self, shape: tuple[int, ...]):
        self._shape = shape
        self._length = _SMALL_LENGTH if math.prod(shape) <= SMALL else _LARGE_LENGTH
        self._eqns: list[jex_core.JaxprEqn] = []

    def program(self, jaxpr: jex_core.ClosedJaxpr) -> Flattened | None:
        try:
            invars = [self._var(var) for var in jaxpr.invars]
            outvars = self._walk(jaxpr, invars)
        except _DifferentError:
            return None
        if not any(eqn.primitive.name == "random_bits" for eqn in self._eqns):
            return None
        vectors = jax_compat.with_equations(jaxpr, invars, outvars, self._eqns)
        return Flattened(vectors, self._shape, _key(vectors, self._length))

    def _walk(self, jaxpr, operands):
        if getattr(jaxpr, "consts", ()):
            raise _DifferentError
        env = dict(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            return self._literal(atom) if isinstance(atom, jex_core.Literal) else env[atom]

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            if eqn.primitive.name == "jit":
                results = self._walk(eqn.params["jaxpr"], operands)
            else:
                params = self._params(eqn)
                results = [self._var(var) for var in eqn.outvars]
                self._eqns.append(eqn.replace(invars=operands, outvars=results, params=params))
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _params(self, eqn):
        name, shapes = eqn.primitive.name, {"shape": self._vector(eqn.outvars[0].aval.shape)}
        if name == "random_bits":
            # Otherwise the order of the bits depends on whether the length is even.
            if eqn.invars[0].aval.shape or not jax_compat.threefry_partitionable(eqn):
                raise _DifferentError
            return eqn.params | shapes
        if name == "broadcast_in_dim" and math.prod(eqn.invars[0].aval.shape) == 1:
            axes = tuple(range(len(self._vector(eqn.invars[0].aval.shape))))
            return eqn.params | shapes | {"broadcast_dimensions": axes}
        if name in _ELEMENTWISE:
            return eqn.params
        raise _DifferentError

    def _vector(self, shape):
        """What becomes of a shape."""
        if not shape:
            return ()
        if shape == self._shape:
            return self._length
        if all(dim == 1 for dim in shape):
            return (1,)
        raise _DifferentError

    def _var(self, var):
        if not hasattr(var.aval, "dtype"):
            raise _DifferentError
        if dtypes.is_key(var.aval.dtype):
            return var
        return jex_core.Var(jax.core.ShapedArray(self._vector(var.aval.shape), var.aval.dtype))

    def _literal(self, literal):
        if literal.aval.shape:
            raise _DifferentError
        return literal


def _key(jaxpr: jex_core.ClosedJaxpr, length: Any) -> Any:
    """What a program does, as a hashable value."""
    names = {var: i for i, var in enumerate(jaxpr.invars)}
    key = [length is _SMALL_LENGTH, *(str(var.aval) for var in jaxpr.invars)]
    for eqn in jaxpr.eqns:
        params = repr(sorted(eqn.params.items()))
        key.append((eqn.primitive.name, params, _atoms(eqn.invars, names)))
        names.update((var, len(names) + i) for i, var in enumerate(eqn.outvars))
        key.extend(str(var.aval) for var in eqn.outvars)
    return (*key, _atoms(jaxpr.outvars, names))


def _atoms(atoms: Sequence[Any], names: dict[Any, int]) -> Any:
    return tuple(
        (str(atom.aval), np.asarray(atom.val, atom.aval.dtype).tobytes())
        if isinstance(atom, jex_core.Literal)
        else names[atom]
        for atom in atoms
    )
