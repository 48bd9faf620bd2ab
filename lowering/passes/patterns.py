"""Finds groups of equations in a jaxpr and replaces them.

Most patterns are written by example: the program as JAX traces it, and what is to take its place,
both as JAX functions. The example is traced, and its equations are searched for in the jaxpr. A
pattern whose parameters vary is a function that looks at the equations itself.
"""

import collections
import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np

from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import Jaxpr
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
      when: whether the replacement serves for arguments of these abstract values.
    """

    example: Callable[..., Any]
    replacement: Callable[..., Any]
    args: tuple[jax.ShapeDtypeStruct, ...]
    when: Callable[..., bool] = lambda *args: True

    @functools.cached_property
    def root(self) -> str:
        """The primitive of the equation that gives the result."""
        return _root(_traced(self.example, self.args)).primitive.name

    def match(self, eqn: jex_core.JaxprEqn, uses: "Uses") -> "Match | None":
        """The group that gives the results of an equation; None if there is none."""
        example = _traced(self.example, self.args)
        for found in _Matcher(example, uses).matches(eqn):
            # The example has parameters that depend on shapes. Traced with those of the arguments
            # that have been found, it must be the same to the last parameter.
            args = tuple(_struct(atom.aval) for atom in found.args)
            if not self.when(*args):
                continue
            try:
                exact = _traced(self.example, args)
            except (TypeError, ValueError):  # These arguments do not fit together.
                continue
            strict = _Matcher(exact, uses, is_strict=True).matches(eqn)
            if any(match.args == found.args for match in strict):
                return Match(found.args, found.eqns, _traced(self.replacement, args))
        return None


@dataclasses.dataclass(frozen=True)
class Match:
    """A group of equations that has been found.

    Attributes:
      args: the atoms that the group is a function of.
      eqns: its equations.
      replacement: what takes its place, as a jaxpr of `args`.
    """

    args: Sequence[Any]
    eqns: Sequence[jex_core.JaxprEqn]
    replacement: Jaxpr | None = None


# A pattern by hand: from the last equation of a group, the equations that take its place.
Search = Callable[[jex_core.JaxprEqn, "Group"], Sequence[jex_core.JaxprEqn] | None]


@dataclasses.dataclass(frozen=True)
class Patterns:
    """What `fuse` searches for: by example, and by hand from the primitive that comes last."""

    by_example: Sequence[Pattern]
    by_hand: Mapping[str, Search]

    @functools.cached_property
    def by_root(self) -> Mapping[str, Sequence[Pattern]]:
        """The patterns by example, by the primitive of their last equation."""
        by_root = collections.defaultdict(list)
        for pattern in self.by_example:
            by_root[pattern.root].append(pattern)
        return by_root


def fuse(jaxpr: Jaxpr, patterns: Patterns) -> Jaxpr:
    """Replaces groups of equations that nothing else needs a part of."""
    uses = Uses(jaxpr)
    new_eqns: dict[int, Callable[[Rewriter], None]] = {}
    gone: set[int] = set()
    for eqn in jaxpr.eqns:
        parts, replace = _find(eqn, uses, patterns)
        if replace is not None and not any(id(part) in gone for part in parts):
            gone.update(id(part) for part in parts)
            new_eqns[id(eqn)] = replace
    if not new_eqns:
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        if id(eqn) in new_eqns:
            new_eqns[id(eqn)](new)
        elif id(eqn) not in gone:
            new.add(eqn)
    return new.jaxpr()


def _find(eqn, uses, patterns):
    """The equations of a group that an equation is the last of, and what adds its replacement."""
    for pattern in patterns.by_root.get(eqn.primitive.name, ()):
        match = pattern.match(eqn, uses)
        if match is not None:
            return match.eqns, functools.partial(_add_replacement, eqn=eqn, match=match)
    search = patterns.by_hand.get(eqn.primitive.name)
    if search is not None:
        group = Group(uses, eqn)
        eqns = search(eqn, group)
        if eqns is not None:
            return group.parts, functools.partial(_add_all, eqns=eqns)
    return (), None


def _add_replacement(new: Rewriter, *, eqn, match):
    new.replace(eqn.outvars, new.inline(match.replacement, new.read(match.args), eqn))


def _add_all(new: Rewriter, *, eqns):
    for eqn in eqns:
        new.add(eqn)


class Uses:
    """Which equations make and use the variables of a jaxpr."""

    def __init__(self, jaxpr: Jaxpr):
        self.position = {id(eqn): i for i, eqn in enumerate(jaxpr.eqns)}
        self.made_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        self.used_by: dict[Any, list[Any]] = collections.defaultdict(list)
        for eqn in (*jaxpr.eqns, None):
            for atom in jaxpr.outvars if eqn is None else eqn.invars:
                if isinstance(atom, jex_core.Var):
                    self.used_by[atom].append(eqn)

    def maker(self, atom: Any) -> jex_core.JaxprEqn | None:
        """The equation that makes an atom; None if none does."""
        return None if isinstance(atom, jex_core.Literal) else self.made_by.get(atom)

    def is_needed_by_others(self, eqns: Sequence[jex_core.JaxprEqn]) -> bool:
        """Whether results of equations are used outside of the group, but for the first one's."""
        group = {id(eqn) for eqn in eqns}
        return any(
            id(user) not in group
            for eqn in eqns[1:]
            for var in eqn.outvars
            for user in self.used_by[var]
        )


class _Matcher:
    """Searches for the equations of an example."""

    def __init__(self, example: Jaxpr, uses: Uses, is_strict: bool = False):
        """If `is_strict`, parameters and abstract values have to be the same, too."""
        self._example = example
        self._made_by = {var: eqn for eqn in example.eqns for var in eqn.outvars}
        self._uses = uses
        self._is_strict = is_strict

    def matches(self, eqn: jex_core.JaxprEqn) -> Iterator[Match]:
        """The groups that end with an equation; several if operands can be exchanged."""
        for env in self._equation(_root(self._example), eqn, {}):
            eqns = [*{id(e): e for e in (eqn, *self._matched(env))}.values()]
            if all(var in env for var in self._example.invars) and (
                not self._uses.is_needed_by_others(eqns)
            ):
                yield Match([env[var] for var in self._example.invars], eqns)

    def _matched(self, env):
        return (self._uses.made_by[env[v]] for v in self._made_by if v in env)

    def _atom(self, ours: Any, theirs: Any, env: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
        """The ways to let an atom of the example stand for one of the jaxpr, given others."""
        if isinstance(ours, jex_core.Literal):
            if isinstance(theirs, jex_core.Literal) and _is_same_value(ours.val, theirs.val):
                yield env
        elif ours in env:
            if env[ours] is theirs:
                yield env
        elif ours not in self._made_by:
            yield {**env, ours: theirs}
        else:
            maker = self._uses.maker(theirs)
            if maker is not None:
                yield from self._equation(self._made_by[ours], maker, env, theirs, ours)

    def _equation(self, ours, theirs, env, their_var=None, our_var=None):
        if ours.primitive.name != theirs.primitive.name or (
            len(ours.invars) != len(theirs.invars) or len(ours.outvars) != len(theirs.outvars)
        ):
            return
        if our_var and ours.outvars.index(our_var) != theirs.outvars.index(their_var):
            return
        if self._is_strict and not (
            ours.params == theirs.params and _shapes(ours) == _shapes(theirs)
        ):
            return
        env = {**env, **dict(zip(ours.outvars, theirs.outvars, strict=True))}
        orders = [theirs.invars]
        if has_trait(ours.primitive.name, Trait.MONOID):
            orders.append(theirs.invars[::-1])
        for operands in orders:
            yield from self._operands(ours.invars, operands, env)

    def _operands(self, ours, theirs, env):
        if not ours:
            yield env
            return
        for found in self._atom(ours[0], theirs[0], env):
            yield from self._operands(ours[1:], theirs[1:], found)


class Group:
    """The equations that a search has found, starting with one."""

    def __init__(self, uses: Uses, eqn: jex_core.JaxprEqn):
        self._uses = uses
        self.parts = [eqn]

    def maker(self, atom: Any, primitive: str) -> jex_core.JaxprEqn | None:
        """The equation of a primitive that makes a variable, now part of the group.

        None if another primitive makes it, or if it is used more than once.
        """
        eqn = self._uses.maker(atom)
        if eqn is None or eqn.primitive.name != primitive or len(self._uses.used_by[atom]) != 1:
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
def _traced(fun: Callable[..., Any], args: Sequence[jax.ShapeDtypeStruct]) -> Jaxpr:
    jaxpr, _ = trace_ours(fun, args)
    return inline_calls(jaxpr, frozenset())


def _root(example: Jaxpr) -> jex_core.JaxprEqn:
    """The equation that gives the result of an example."""
    (result,) = example.outvars
    return next(eqn for eqn in example.eqns if result in eqn.outvars)


def _struct(aval: Any) -> jax.ShapeDtypeStruct:
    """A shape and dtype; a weak type would make JAX convert what is combined with it."""
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _shapes(eqn: jex_core.JaxprEqn) -> list[Any]:
    return [(var.aval.shape, var.aval.dtype) for var in itertools.chain(eqn.invars, eqn.outvars)]


def _is_same_value(x: Any, y: Any) -> bool:
    return bool(np.array_equal(x, y, equal_nan=True))
