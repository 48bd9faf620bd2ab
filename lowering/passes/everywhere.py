"""Changes equations wherever they are: in a jaxpr, and in all jaxprs that its equations hold."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import jax.extend.core as jex_core

from lowering.passes.jaxprs import Jaxpr, called_jaxprs

T = TypeVar("T")


def _same(x: T) -> T:
    return x


class Everywhere:
    """Applies functions to equations and jaxprs, inner jaxprs first.

    What does not change stays the same object, and what several equations share stays shared: a
    jaxpr that is called often has to be one jaxpr, to become one function of the graph.
    """

    def __init__(
        self,
        change: Callable[[jex_core.JaxprEqn], jex_core.JaxprEqn] = _same,
        finish: Callable[[Any], Any] = _same,
    ):
        """
        Args:
          change: returns what takes the place of an equation: one with the same operands and
            results, or the equation itself.
          finish: returns what takes the place of a jaxpr whose equations have been changed.
        """
        self._change = change
        self._finish = finish
        # By identity, with the jaxpr itself, which keeps its identity from being reused.
        self._jaxprs: dict[int, tuple[Jaxpr, Jaxpr]] = {}

    def jaxpr(self, jaxpr: Jaxpr) -> Any:
        """The changed jaxpr."""
        # Calls may be nested deeper than functions of Python may be: each jaxpr waits in a list.
        pending = [jaxpr]
        while pending:
            last = pending[-1]
            if id(last) in self._jaxprs:
                pending.pop()
                continue
            # A jaxpr that is called a thousand times is changed once.
            inner = {id(x): x for x in self._inner(last) if id(x) not in self._jaxprs}
            pending += inner.values()
            if not inner:
                self._jaxprs[id(last)] = last, self._finish(self._changed(last))
        return self._jaxprs[id(jaxpr)][1]

    def _inner(self, jaxpr: Jaxpr) -> Iterator[Jaxpr]:
        """The jaxprs that are changed before a jaxpr: its open one, or those of its equations."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner is not jaxpr:
            yield inner
            return
        for eqn in jaxpr.eqns:
            yield from called_jaxprs(eqn)

    def _changed(self, jaxpr):
        """The jaxpr, once the jaxprs in it and its equations are changed."""
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        if inner is not jaxpr:  # Since JAX 0.12 open and closed jaxprs are the same.
            changed = self.jaxpr(inner)
            return jaxpr if changed is inner else jaxpr.replace(jaxpr=changed)
        eqns = [self._change(self._with_changed_jaxprs(eqn)) for eqn in jaxpr.eqns]
        if are_same(eqns, jaxpr.eqns):
            return jaxpr
        effects = jaxpr.effects.union(*(eqn.effects for eqn in eqns))
        return jaxpr.replace(eqns=eqns, effects=effects)

    def _with_changed_jaxprs(self, eqn):
        if next(called_jaxprs(eqn), None) is None:
            return eqn
        params = {name: self._value(value) for name, value in eqn.params.items()}
        is_same = are_same(params.values(), eqn.params.values())
        return eqn if is_same else eqn.replace(params=params)

    def _value(self, value):
        """A parameter, or a part of one."""
        if isinstance(value, jex_core.ClosedJaxpr | jex_core.Jaxpr):
            return self.jaxpr(value)
        if not isinstance(value, tuple | list):
            return value
        items = list(map(self._value, value))
        if are_same(items, value):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def are_same(values: Iterable[Any], others: Iterable[Any]) -> bool:
    """Whether each value is the same object as its counterpart."""
    return all(x is y for x, y in zip(values, others, strict=True))
