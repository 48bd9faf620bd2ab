"""Makes programs that draw random bits independent of the shape, so that calls share a function.

`jax.random` draws bits in row-major order, and computes an elementwise function of them. Written
for vectors of any length, such a program is one function of the graph for all shapes. Row of the
bench that shows the gain: random_normal, nodes of each further call.
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import avals, jax_compat, registry
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import Jaxpr, used
from lowering.passes.legalize.keys import RANDOM, RANDOM_OF_PARTS
from lowering.passes.rewriting import Rewriter
from lowering.registry import Trait, has_trait

# The name of the length.
LENGTH = "n"

# The greatest length of a small vector; rules choose ops by whether vectors are small.
SMALL = 4095

_SMALL_LENGTH = jax.export.symbolic_shape(LENGTH, constraints=[f"{LENGTH} <= {SMALL}"])
_LARGE_LENGTH = jax.export.symbolic_shape(LENGTH, constraints=[f"{LENGTH} >= {SMALL + 1}"])

# Calls a flattened program. Its parameters are the program as it was, and the flattened one.
_FLAT_CALL = registry.new_primitive("flat_call")
_FLAT_CALL.multiple_results = True
_FLAT_CALL.def_abstract_eval(lambda *_, jaxpr, flattened: jaxpr.out_avals)


@dataclasses.dataclass(frozen=True)
class Flattened:
    """A program on vectors.

    Attributes:
      jaxpr: the program; its length is the dimension variable `LENGTH`, its results are vectors.
      shape: the shape of the results of the program that it was made of.
      key: programs with the same key do the same.
    """

    jaxpr: jex_core.ClosedJaxpr
    shape: tuple[int, ...]
    key: str


def flatten_calls(jaxpr: Jaxpr) -> Jaxpr:
    """Calls flattened programs instead of jaxprs, where these can be flattened."""
    programs = [(eqn, *_program(eqn)) for eqn in jaxpr.eqns]
    if not any(program for _, program, _ in programs):
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn, program, operands in programs:
        flattened = flatten(program) if program is not None else None
        if flattened is not None:
            params = {"jaxpr": program, "flattened": flattened}
            eqn = eqn.replace(primitive=_FLAT_CALL, invars=list(operands), params=params)
        new.add(eqn)
    return new.jaxpr()


def _program(eqn: jex_core.JaxprEqn) -> tuple[Jaxpr | None, Sequence[Any]]:
    """The jaxpr that an equation calls, or is itself if it draws random bits; and its operands."""
    if registry.is_call(eqn):
        return registry.called(eqn, eqn.invars)
    return (jax_compat.jaxpr_of(eqn) if _draws_bits(eqn) else None), eqn.invars


def _draws_bits(eqn: jex_core.JaxprEqn) -> bool:
    return eqn.primitive in (RANDOM, RANDOM_OF_PARTS) and eqn.params["name"] == "random_bits"


def flatten(program: Jaxpr) -> Flattened | None:
    """The program on vectors that is equal to a jaxpr; None if there is none.

    It has to draw random bits, and to treat all elements alike. Its results have to be of one
    shape, and its operands key data or of size one.
    """
    jaxpr = inline_calls(program, frozenset())
    shapes = {getattr(x.aval, "shape", ()) for x in jaxpr.outvars}
    shape = shapes.pop() if len(shapes) == 1 else ()
    if not avals.is_static(shape) or math.prod(shape) <= 1 or jaxpr.constvars:
        return None
    drawing = [eqn for eqn in jaxpr.eqns if _draws_bits(eqn)]
    if not drawing:
        return None
    is_small = math.prod(shape) <= SMALL
    keys = frozenset(used(drawing))
    if any(x not in keys and x.aval.shape == shape for x in jaxpr.invars):
        return None
    flattening = _Flattening(shape, _SMALL_LENGTH if is_small else _LARGE_LENGTH, keys)
    try:
        eqns = [flattening.equation(eqn) for eqn in jaxpr.eqns]
        invars, outvars = map(flattening.atoms, (jaxpr.invars, jaxpr.outvars))
    except _NotElementwiseError:
        return None
    vectors = jax_compat.with_equations(jaxpr, invars, outvars, eqns)
    return Flattened(vectors, shape, f"{'small' if is_small else 'large'} {vectors}")


class _NotElementwiseError(Exception):
    """An equation does not treat all elements alike."""


class _Flattening:
    """Rewrites equations on arrays of one shape as equations on vectors."""

    def __init__(self, shape: Sequence[int], length: Sequence[Any], keys: frozenset[jex_core.Var]):
        """`keys` are the variables of key data, which stay as they are."""
        self._shape = shape
        self._keys = keys
        self._length = length
        self._vars: dict[jex_core.Var, jex_core.Var] = {}

    def equation(self, eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        """An equation on vectors."""
        invars, outvars = self.atoms(eqn.invars), self.atoms(eqn.outvars)
        return eqn.replace(invars=invars, outvars=outvars, params=self._params(eqn))

    def atoms(self, atoms: Sequence[Any]) -> list[Any]:
        """Variables and literals of the program on vectors."""
        return [self._atom(atom) for atom in atoms]

    def _atom(self, atom):
        is_literal = isinstance(atom, jex_core.Literal)
        if not hasattr(atom.aval, "dtype") or (is_literal and atom.aval.shape):
            raise _NotElementwiseError
        if is_literal or atom in self._keys:
            return atom
        if atom not in self._vars:
            aval = jax.core.ShapedArray(self._vector(atom.aval.shape), atom.aval.dtype)
            self._vars[atom] = jex_core.Var(aval)
        return self._vars[atom]

    def _vector(self, shape):
        """The shape in the program on vectors."""
        if not shape:
            return ()
        if shape == self._shape:
            return tuple(self._length)
        if all(dim == 1 for dim in shape):
            return (1,)
        raise _NotElementwiseError

    def _params(self, eqn):
        name, shape = eqn.primitive.name, self._vector(eqn.outvars[0].aval.shape)
        if _draws_bits(eqn):
            # Otherwise the order of the bits depends on whether the length is even.
            if len(eqn.invars[0].aval.shape) == 1 and eqn.params["partitionable"]:
                return {**eqn.params, "shape": shape}
        elif not self._keys.isdisjoint(used([eqn])):
            raise _NotElementwiseError
        elif name == "broadcast_in_dim" and math.prod(eqn.invars[0].aval.shape) == 1:
            axes = tuple(range(len(self._vector(eqn.invars[0].aval.shape))))
            return {**eqn.params, "shape": shape, "broadcast_dimensions": axes}
        elif has_trait(name, Trait.ELEMENTWISE):
            return eqn.params
        raise _NotElementwiseError
