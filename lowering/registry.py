"""Which rule lowers which primitive, and what else is to be known about a primitive.

A rule is found by primitive name and target. Names are strings because they survive
refactorings of JAX; primitive objects do not. There are three kinds of rule:

* `@rule` functions take a `Context`, TensorFlow tensors and the primitive's parameters, and
  return a tensor (or a sequence of tensors for primitives with multiple results);
* `@decomposition` functions are written in JAX, in simpler primitives. They take JAX arrays and
  the primitive's parameters and are traced and lowered like user code;
* `@call` functions name the jaxpr that a primitive calls, and its operands.

`@on_key_data` functions, in JAX, say what a primitive does with PRNG keys, and `@on_promoted`
functions what it does with numbers that are stored in a wider dtype.

Passes and the interpreter ask for the traits of a primitive; they have no lists of primitives.
"""

import collections
import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, TypeVar

import jax.extend.core as jex_core
import numpy as np

from lowering import jax_compat
from lowering.facts import Facts, Rule, Trait
from lowering.targets import CONSUMER, TF, Target, all_targets, resolve

Fun = TypeVar("Fun", bound=Callable[..., Any])


# The primitives that passes introduce, by name.
_OURS: dict[str, jex_core.Primitive] = {}
_RULES: dict[tuple[str, str], list[Rule]] = collections.defaultdict(list)
_FACTS: dict[str, Facts] = collections.defaultdict(Facts)
_NO_FACTS = Facts()


def _register(
    primitives: Sequence[str],
    target: Target | str,
    new: Rule,
    traits: Trait = Trait.NONE,
    replace: bool = False,
) -> None:
    base = target if isinstance(target, Target) else resolve(True, target)
    for primitive in primitives:
        if replace:
            _remove(primitive, base, new.dtypes)
        for to in _heirs(base) if replace else [base]:
            rules = _RULES[primitive, to.name]
            other = next((rule for rule in rules if rule.dtypes == new.dtypes), None)
            if other is not None:
                raise ValueError(
                    f"{primitive!r} has two rules for target {to.name!r}: {_origin(other)} and "
                    f"{_origin(new)}. If the second is to take the place of the first, register "
                    "it with replace=True"
                )
            # Rules for some dtypes take precedence over the rule for all.
            rules.insert(0 if new.dtypes is not None else len(rules), new)
        _FACTS[primitive].traits |= traits


def _remove(primitive: str, base: Target, dtypes: frozenset[np.dtype] | None) -> None:
    """Removes what a new rule takes the place of, and what is known of the primitive beside it."""
    for target in _heirs(base):
        rules = _RULES[primitive, target.name]
        rules[:] = [
            rule
            for rule in rules
            if dtypes is not None and (rule.dtypes is None or not rule.dtypes <= dtypes)
        ]
    _FACTS[primitive] = Facts()


def _heirs(base: Target) -> list[Target]:
    """A target and those that inherit its rules."""
    return [target for target in all_targets() if base in target.chain]


def _origin(rule: Rule) -> str:
    return f"{rule.fun.__module__}.{getattr(rule.fun, '__qualname__', rule.fun)}"


def _dtype_set(dtypes: Collection[Any] | None) -> frozenset[np.dtype] | None:
    return None if dtypes is None else frozenset(np.dtype(dtype) for dtype in dtypes)


def rule(
    *primitives: str,
    target: Target | str = TF,
    dtypes: Collection[Any] | None = None,
    keep_constants: bool = False,
    in_storage: bool = False,
    traits: Trait = Trait.NONE,
    fold: Callable[..., np.ndarray] | None = None,
    replace: bool = False,
) -> Callable[[Fun], Fun]:
    """Registers a function `(ctx, *tensors, **params)` as the rule of `primitives`.

    Args:
      *primitives: names of primitives.
      target: the target for which the rule is written, or its name; targets derived from it
        inherit it.
      dtypes: restricts the rule to equations whose first operand has one of these dtypes. A rule
        for narrow dtypes covers equations with any operand or result of them, and takes them in
        their storage dtypes.
      keep_constants: pass operands that are known at lowering time as `np.ndarray`.
      in_storage: pass values of all dtypes in their storage dtypes: PRNG keys as key data, and
        narrow numbers in a wider dtype. Without it the rule is
        applied to unsigned integers in place of keys, and results on narrow numbers are rounded.
      traits: traits of the primitives, whatever the target and dtype.
      fold: a NumPy function `(*operands, **params)` that evaluates the primitive at lowering time,
        instead of the rule.
      replace: takes the place of all rules that there are for these dtypes, for the target and
        those derived from it; and of the traits, which are those given here.

    Raises:
      ValueError: if there is a rule already and it is not to be replaced, or for an unknown target.
    """

    def decorate(fun):
        new = Rule(fun, False, _dtype_set(dtypes), keep_constants, in_storage)
        _register(primitives, target, new, traits, replace)
        for primitive in primitives if fold else ():
            _FACTS[primitive].fold = fold
        return fun

    return decorate


def decomposition(
    *primitives: str,
    target: Target | str = TF,
    dtypes: Collection[Any] | None = None,
    traits: Trait = Trait.NONE,
    replace: bool = False,
) -> Callable[[Fun], Fun]:
    """Registers a JAX function `(*operands, **params)` as the rule of `primitives`.

    It is traced with 64-bit types enabled, so it must name its dtypes. Arguments as for `rule`; a
    decomposition for narrow dtypes is rounded after each of its steps.
    """

    def decorate(fun):
        _register(primitives, target, Rule(fun, True, _dtype_set(dtypes)), traits, replace)
        return fun

    return decorate


def legalization(*primitives: str, dtypes: Collection[Any]) -> Callable[[Fun], Fun]:
    """Registers a JAX function `(*operands, **params)` as what `primitives` do on some dtypes.

    It is for targets without these dtypes, and in primitives that these targets have: see
    `passes.legalize`. Otherwise it is a decomposition.
    """

    def decorate(fun):
        new = Rule(fun, True, _dtype_set(dtypes), is_legalization=True)
        _register(primitives, CONSUMER, new)
        return fun

    return decorate


def call(*primitives: str) -> Callable[[Fun], Fun]:
    """Registers what `primitives` call: `(*operands, **params)` -> jaxpr, operands of the jaxpr."""

    def decorate(fun):
        def lower(ctx, *operands, **params):
            jaxpr, operands = fun(*operands, **params)
            return ctx.call(jaxpr, *operands)

        _register(primitives, TF, Rule(lower, keep_constants=True, in_storage=True))
        for primitive in primitives:
            _FACTS[primitive].called = fun
        return fun

    return decorate


def on_key_data(*primitives: str, traits: Trait = Trait.NONE) -> Callable[[Fun], Fun]:
    """Registers a JAX function as what `primitives` do with PRNG keys.

    It takes the operands, with key data (uint32) in place of keys, and by name the parameters, the
    implementation of the keys (`impl`) and the setting `jax_threefry_partitionable`
    (`partitionable`). It returns key data in place of keys.

    Args:
      *primitives: names of primitives.
      traits: traits of the primitives. What is `LONG` becomes a function of the graph.
    """

    def decorate(fun):
        for primitive in primitives:
            _FACTS[primitive].on_key_data = fun
            _FACTS[primitive].traits |= traits
        return fun

    return decorate


def on_promoted(*primitives: str, dtypes: Collection[Any]) -> Callable[[Fun], Fun]:
    """Registers a JAX function as what `primitives` do with numbers stored in wider dtypes.

    It takes the operands, those of `dtypes` in storage dtypes, and by name the parameters, the
    primitive (`primitive`), the dtypes of the operands (`dtypes`) and the storage dtypes of the
    results (`storages`). It returns the results, which fit the dtypes that they have. Without such
    a function, the primitive is applied to the operands in storage dtypes, and what may leave the
    range is made to fit.

    Args:
      *primitives: names of primitives.
      dtypes: of an operand or a result.
    """

    def decorate(fun):
        for primitive in primitives:
            functions = dict.fromkeys(map(np.dtype, dtypes), fun)
            _FACTS[primitive].on_promoted = {**_FACTS[primitive].on_promoted, **functions}
        return fun

    return decorate


def refuse(*primitives: str, reason: str) -> None:
    """Declares that `primitives` are lowered for no target.

    Args:
      *primitives: names of JAX primitives.
      reason: why, and what to do instead; the error message has it.
    """
    for primitive in primitives:
        _FACTS[primitive].refusal = reason


def new_primitive(
    name: str, kind: type[jex_core.Primitive] = jex_core.Primitive
) -> jex_core.Primitive:
    """A primitive of our own, which no program has before a pass puts it there.

    Raises:
      ValueError: if there is one of this name, whose rule both would share.
    """
    if name in _OURS:
        raise ValueError(f"there is a primitive of the name {name!r} already")
    _OURS[name] = kind(name)
    return _OURS[name]


def is_namesake(primitive: Any) -> bool:
    """Whether a primitive of a user has the name of one of JAX or of ours, but is another.

    Rules are found by name, but that of the other primitive would compute something else.
    """
    ours = _OURS.get(primitive.name, primitive)
    return ours is not primitive or jax_compat.is_namesake(primitive)


def facts(primitive: str) -> Facts:
    """What is known about a primitive, which need not have a rule."""
    return _FACTS.get(primitive, _NO_FACTS)


def is_call(eqn: Any) -> bool:
    """Whether an equation calls a jaxpr, as those of `jax.jit` and `jax.remat` do."""
    return facts(eqn.primitive.name).called is not None


def called(eqn: Any, operands: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """The jaxpr that an equation calls, and its operands, given those of the equation."""
    function = facts(eqn.primitive.name).called
    if function is None:
        raise ValueError(f"{eqn.primitive.name} is no call")
    return function(*operands, **eqn.params)


def has_trait(primitive: str, trait: Trait) -> bool:
    """Whether a primitive has a trait."""
    return trait in facts(primitive).traits


def lookup(primitive: str, target: Target, dtype: Any = None, named: bool = False) -> Rule | None:
    """The rule for a primitive whose first operand has `dtype`, or None.

    Args:
      primitive: the name of the primitive.
      target: the target; the rules of its parents are inherited.
      dtype: the dtype.
      named: whether to find only rules that are restricted to dtypes, with this one among them.
    """
    for base in target.chain:
        for candidate in _RULES.get((primitive, base.name), ()):
            is_found = not named if candidate.dtypes is None else dtype in candidate.dtypes
            if is_found and _is_needed(candidate, target, dtype):
                return candidate
    return None


def _is_needed(candidate: Rule, target: Target, dtype: Any) -> bool:
    """Whether a rule is there for a target: legalizations are for the dtypes that it lacks."""
    return not candidate.is_legalization or target.emulates(dtype)


def rule_of(eqn: jex_core.JaxprEqn, target: Target, dtype: Any = None) -> Rule | None:
    """The rule for an equation, or None.

    It is one that is restricted to `dtype`, if there is one, or else that for the first operand.
    """
    if is_namesake(eqn.primitive):
        return None
    name = eqn.primitive.name
    first = getattr(eqn.invars[0].aval, "dtype", None) if eqn.invars else None
    named = None if dtype is None else lookup(name, target, dtype, named=True)
    return named or lookup(name, target, first)


@contextlib.contextmanager
def all_or_nothing() -> Iterator[None]:
    """A context in which rules are registered; if it ends with an error, none of them is."""
    rules = {key: list(value) for key, value in _RULES.items()}
    known = {name: dataclasses.replace(value) for name, value in _FACTS.items()}
    try:
        yield
    except Exception:
        _RULES.clear()
        _RULES.update(rules)
        _FACTS.clear()
        _FACTS.update(known)
        raise


def primitives(target: Target = TF) -> frozenset[str]:
    """The names of all primitives that have a rule on `target`."""
    names = {base.name for base in target.chain}
    on_keys = {primitive for primitive, known in _FACTS.items() if known.on_key_data is not None}
    return frozenset({primitive for primitive, name in _RULES if name in names} | on_keys)
