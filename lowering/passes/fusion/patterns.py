"""Finds groups of equations in a jaxpr and replaces them.

Most patterns are written by example: the program as JAX traces it, and what is to take its place,
both as JAX functions. The example is traced, and its equations are searched for in the jaxpr. Where
the parameters of a group vary, a function searches for it by hand.
"""

import collections
import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.literals import convert_literals
from lowering.passes.rewriting import Rewriter
from lowering.passes.trace import trace_ours
from lowering.registry import Trait, has_trait


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A group of equations, by example.

    Attributes:
      example: the program that is searched for: a JAX function with one result.
      replacement: a JAX function of the same arguments that takes its place.
      args: shapes and dtypes that the example can be traced with. Those of the arguments in a
        program may be others, of any rank; scalars may be literals.
      when: whether the replacement serves for arguments of these shapes and dtypes.
      literals: the positions of arguments that have to be literals.
      when_literals: whether the replacement serves for literals of these values.
      reduction: a primitive in the example, of which there may be others with other axes. Example
        and replacement take these as `axes`, which has a default for the shapes `args`.
    """

    example: Callable[..., Any]
    replacement: Callable[..., Any]
    args: tuple[jax.ShapeDtypeStruct, ...]
    when: Callable[..., bool] = lambda *args: True
    literals: tuple[int, ...] = ()
    when_literals: Callable[..., bool] = lambda *values: True
    reduction: str | None = None

    @functools.cached_property
    def root(self) -> str:
        """The primitive of the last equation."""
        return _root(_traced(self.example, self.args)).primitive.name


# Takes the last equation of a group; returns the equations that take the place of the group, or
# None if there is none.
Search = Callable[[jex_core.JaxprEqn, "Group"], Sequence[jex_core.JaxprEqn] | None]


def fuse(jaxpr: Jaxpr, patterns: Sequence[Pattern], searches: Mapping[str, Search]) -> Jaxpr:
    """Replaces groups of equations of which nothing else uses an inner result.

    Args:
      jaxpr: a jaxpr.
      patterns: groups by example.
      searches: searches by hand, by the primitive of the last equation.
    """
    uses = Uses(jaxpr)
    # What is added in place of the last equation of each group.
    added: dict[int, Callable[[Rewriter], None]] = {}
    removed: set[int] = set()
    for eqn in jaxpr.eqns:
        for parts, add in _groups(eqn, uses, patterns, searches):
            if removed.isdisjoint(map(id, parts)):
                removed.update(map(id, parts))
                added[id(eqn)] = add
                break
    if not added:
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        if id(eqn) in added:
            added[id(eqn)](new)
        elif id(eqn) not in removed:
            new.add(eqn)
    return new.jaxpr()


def _groups(eqn, uses, patterns, searches):
    """The groups that an equation is the last of: their equations, and what adds others."""
    for pattern in patterns:
        if pattern.root == eqn.primitive.name:
            for args, options, parts in _matches(pattern, eqn, uses):
                yield parts, functools.partial(_replace, eqn, pattern.replacement, args, options)
    search = searches.get(eqn.primitive.name)
    if search is not None:
        group = Group(uses, eqn)
        eqns = search(eqn, group)
        if eqns is not None:
            yield group.parts, lambda new: [new.add(other) for other in eqns]


def _replace(eqn, fun, args, options, new):
    """Adds a function of atoms, and of keyword arguments, in place of an equation."""
    jaxpr = _traced(fun, _structs(args), options)
    new.replace(eqn.outvars, new.inline(jaxpr, new.read(args), eqn))


def _matches(pattern, eqn, uses):
    """The groups of a pattern that an equation is the last of.

    Yields their arguments, keyword arguments, and equations.
    """
    for found in _Matcher(_traced(pattern.example, pattern.args), uses).matches(eqn):
        # The example has parameters that depend on shapes. Traced with the arguments that have been
        # found, it must be the same to the last parameter.
        structs = _structs(found[0])
        literals = [found[0][i] for i in pattern.literals]
        if not all(isinstance(atom, jex_core.Literal) for atom in literals):
            continue
        if pattern.when(*structs) and pattern.when_literals(*(atom.val for atom in literals)):
            options = _options(pattern, found[1])
            try:
                exact = _traced(pattern.example, structs, options)
            except (TypeError, ValueError):  # These arguments do not fit together.
                continue
            yield from (
                (args, options, parts)
                for args, parts in _Matcher(exact, uses, is_exact=True).matches(eqn)
                if all(map(_is_same, args, found[0]))
            )


def _options(pattern, parts):
    """The keyword arguments of the example of a pattern for a group of equations."""
    if pattern.reduction is None:
        return ()
    axes = next(p.params["axes"] for p in parts if p.primitive.name == pattern.reduction)
    return (("axes", tuple(map(int, axes))),)


class Uses:
    """Which equations make and use the variables of a jaxpr."""

    def __init__(self, jaxpr: Jaxpr):
        self.position = {id(eqn): i for i, eqn in enumerate(jaxpr.eqns)}
        self._made_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        self.used_by: dict[Any, list[Any]] = collections.defaultdict(list)
        for eqn in (*jaxpr.eqns, None):
            for atom in jaxpr.outvars if eqn is None else eqn.invars:
                if isinstance(atom, jex_core.Var):
                    self.used_by[atom].append(eqn)

    def maker(self, atom: Any, primitive: str | None = None) -> jex_core.JaxprEqn | None:
        """The equation that makes an atom, if it is one of a primitive; None if none does."""
        eqn = None if isinstance(atom, jex_core.Literal) else self._made_by.get(atom)
        return eqn if eqn is None or primitive in (None, eqn.primitive.name) else None


class _Matcher:
    """Searches for the equations of an example."""

    def __init__(self, example: Jaxpr, uses: Uses, is_exact: bool = False):
        """If `is_exact`, parameters and abstract values have to be the same, too."""
        self._example = example
        self._made_by = {var: eqn for eqn in example.eqns for var in eqn.outvars}
        self._uses = uses
        self._is_exact = is_exact

    def matches(self, eqn: jex_core.JaxprEqn) -> Iterator[tuple[list[Any], list[Any]]]:
        """The groups that end with an equation; several if operands can be exchanged."""
        for env in self._equation(_root(self._example), eqn, {}):
            made: list[Any] = [self._uses.maker(env[v]) for v in self._made_by if v in env]
            parts = {id(part): part for part in made}
            is_whole = all(
                id(user) in parts
                for part in parts.values()
                if part is not eqn
                for var in part.outvars
                for user in self._uses.used_by[var]
            )
            if is_whole and all(var in env for var in self._example.invars):
                yield [env[var] for var in self._example.invars], list(parts.values())

    def _equation(self, ours, theirs, env):
        """The ways to let an equation of the example stand for one of the jaxpr, given others."""
        if ours.primitive is not theirs.primitive or len(ours.invars) != len(theirs.invars):
            return
        if self._is_exact and (
            ours.params != theirs.params or _structs(ours.outvars) != _structs(theirs.outvars)
        ):
            return
        env = {**env, **dict(zip(ours.outvars, theirs.outvars, strict=True))}
        yield from self._operands(ours.invars, theirs.invars, env)
        if has_trait(ours.primitive.name, Trait.MONOID):
            yield from self._operands(ours.invars, theirs.invars[::-1], env)

    def _operands(self, ours, theirs, env):
        if not ours:
            yield env
            return
        for found in self._atom(ours[0], theirs[0], env):
            yield from self._operands(ours[1:], theirs[1:], found)

    def _atom(self, ours, theirs, env):
        if isinstance(ours, jex_core.Literal):
            if _is_same(ours, theirs):
                yield env
        elif ours in env:
            if _is_same(env[ours], theirs):
                yield env
        elif ours not in self._made_by:
            yield {**env, ours: theirs}
        elif (maker := self._uses.maker(theirs)) is not None:
            for found in self._equation(self._made_by[ours], maker, env):
                if found[ours] is theirs:
                    yield found


class Group:
    """The equations that a search without a pattern has found, starting with one."""

    def __init__(self, uses: Uses, eqn: jex_core.JaxprEqn):
        self._uses = uses
        self.parts = [eqn]

    def maker(self, atom: Any, primitive: str) -> jex_core.JaxprEqn | None:
        """The equation of a primitive that makes a variable, now part of the group.

        None if another primitive makes it, or if it is used more than once.
        """
        eqn = self._uses.maker(atom, primitive)
        if eqn is None or len(self._uses.used_by[atom]) != 1:
            return None
        self.parts.append(eqn)
        return eqn

    def user(self, var: jex_core.Var, primitive: str) -> jex_core.JaxprEqn | None:
        """The only equation that uses a variable, now part of the group, if of a primitive."""
        users = self._uses.used_by[var]
        if len(users) != 1 or users[0] is None or users[0].primitive.name != primitive:
            return None
        self.parts.append(users[0])
        return users[0]

    def is_last(self, eqn: jex_core.JaxprEqn, primitive: str) -> bool:
        """Whether no equation of a primitive in the group comes after one."""
        position = self._uses.position
        others = (part for part in self.parts if part.primitive.name == primitive)
        return all(position[id(part)] <= position[id(eqn)] for part in others)


@functools.lru_cache(maxsize=1024)
def _traced(
    fun: Callable[..., Any],
    args: tuple[jax.ShapeDtypeStruct, ...],
    options: tuple[tuple[str, Any], ...] = (),
) -> Jaxpr:
    jaxpr, _ = trace_ours(fun, args, options)
    return convert_literals(inline_calls(jaxpr, frozenset()))


def _structs(atoms: Sequence[Any]) -> tuple[jax.ShapeDtypeStruct, ...]:
    """Shapes and dtypes; a weak type would make JAX convert what is combined with it."""
    return tuple(jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in atoms)


def _is_same(x: Any, y: Any) -> bool:
    """Whether atoms are the same variable, or literals of the same value."""
    if isinstance(x, jex_core.Literal) and isinstance(y, jex_core.Literal):
        return bool(np.array_equal(x.val, y.val, equal_nan=True))
    return x is y


def _root(example: Jaxpr) -> jex_core.JaxprEqn:
    """The equation that gives the result of an example."""
    (result,) = example.outvars
    return next(eqn for eqn in example.eqns if result in eqn.outvars)
