"""Makes elementwise programs that draw random bits independent of the shape.

What `jax.random` computes is of that kind: random bits in row-major order, and an elementwise
function of them. As a program on a vector of any length it is one function of the graph, which
calls of all shapes share.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering import avals, jax_compat, registry
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter
from lowering.registry import Trait, has_trait

# The name of the length.
LENGTH = "n"

_BITS = "random_bits"

# Where rules choose between ways for small and for large arrays.
SMALL = 4095

# Calls a flattened program. Its parameters are the program as it was, and the flattened one.
_FLAT_CALL = jex_core.Primitive("flat_call")
_FLAT_CALL.multiple_results = True

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

    @property
    def size(self) -> int:
        """The length of the result."""
        return math.prod(self.shape)


def flatten_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Calls flattened programs instead of jaxprs, where these can be flattened."""
    if not any(_program(eqn)[0] for eqn in jaxpr.eqns):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        program, operands = _program(eqn)
        flattened = flatten(program) if program is not None else None
        if flattened is not None:
            params = {"jaxpr": program, "flattened": flattened}
            eqn = eqn.replace(primitive=_FLAT_CALL, invars=operands, params=params)
        new.add(eqn)
    return new.jaxpr()


def _program(eqn: jex_core.JaxprEqn) -> tuple[jex_core.ClosedJaxpr | None, Sequence[Any]]:
    """The jaxpr that an equation calls or, if it draws random bits, is; and its operands."""
    called = registry.facts(eqn.primitive.name).called
    if called is not None:
        return called(*eqn.invars, **eqn.params)
    return (jax_compat.jaxpr_of(eqn) if eqn.primitive.name == _BITS else None), eqn.invars


def flatten(jaxpr: Jaxpr) -> Flattened | None:
    """A program with one result on vectors, or None if it is not of that kind.

    It has to draw random bits with one key; its other operands have to be of size one.

    Args:
      jaxpr: a jaxpr; what it calls is inlined.
    """
    if len(jaxpr.outvars) != 1:
        return None
    shape = getattr(jaxpr.outvars[0].aval, "shape", ())
    if not avals.is_static(shape) or math.prod(shape) <= 1:
        return None
    return _Flattening(shape).program(jaxpr)


class _NotElementwiseError(Exception):
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
        except _NotElementwiseError:
            return None
        if not any(eqn.primitive.name == _BITS for eqn in self._eqns):
            return None
        vectors = jax_compat.with_equations(jaxpr, invars, outvars, self._eqns)
        return Flattened(vectors, self._shape, _key(vectors, self._length))

    def _walk(self, jaxpr, operands):
        if getattr(jaxpr, "consts", ()):
            raise _NotElementwiseError
        env = dict(zip(jaxpr.invars, operands, strict=True))

        def read(atom):
            return self._literal(atom) if isinstance(atom, jex_core.Literal) else env[atom]

        for eqn in jaxpr.eqns:
            operands = [read(atom) for atom in eqn.invars]
            called = registry.facts(eqn.primitive.name).called
            if called is not None:
                results = self._walk(*called(*operands, **eqn.params))
            else:
                params = self._params(eqn)
                results = [self._var(var) for var in eqn.outvars]
                self._eqns.append(eqn.replace(invars=operands, outvars=results, params=params))
            env.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _params(self, eqn):
        name, shapes = eqn.primitive.name, {"shape": self._vector(eqn.outvars[0].aval.shape)}
        if name == _BITS:
            # Otherwise the order of the bits depends on whether the length is even.
            if eqn.invars[0].aval.shape or not jax_compat.threefry_partitionable(eqn):
                raise _NotElementwiseError
            return eqn.params | shapes
        if name == "broadcast_in_dim" and math.prod(eqn.invars[0].aval.shape) == 1:
            axes = tuple(range(len(self._vector(eqn.invars[0].aval.shape))))
            return eqn.params | shapes | {"broadcast_dimensions": axes}
        if has_trait(name, Trait.ELEMENTWISE):
            return eqn.params
        raise _NotElementwiseError

    def _vector(self, shape):
        """What becomes of a shape."""
        if not shape:
            return ()
        if shape == self._shape:
            return self._length
        if all(dim == 1 for dim in shape):
            return (1,)
        raise _NotElementwiseError

    def _var(self, var):
        if not hasattr(var.aval, "dtype"):
            raise _NotElementwiseError
        if avals.is_key(var.aval.dtype):
            return var
        return jex_core.Var(jax.core.ShapedArray(self._vector(var.aval.shape), var.aval.dtype))

    def _literal(self, literal):
        if literal.aval.shape:
            raise _NotElementwiseError
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
