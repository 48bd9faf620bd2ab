"""Which rule lowers which primitive.

A rule is found by primitive name and target. Names are strings because they survive
refactorings of JAX; primitive objects do not. There are two kinds of rule:

* `@rule` functions take a `Context`, TensorFlow tensors and the primitive's parameters, and
  return a tensor (or a sequence of tensors for primitives with multiple results);
* `@decomposition` functions are written in JAX, in simpler primitives. They take JAX arrays and
  the primitive's parameters and are traced and lowered like user code.
"""

import collections
import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from lowering.targets import target as targets


@dataclasses.dataclass(frozen=True)
class Rule:
    """How one primitive is lowered for one target.

    Attributes:
      fun: the function that was decorated.
      is_decomposition: whether `fun` is written in JAX.
      dtypes: the dtypes of the first operand that the rule covers; None for all.
      keep_constants: whether operands known at lowering time reach `fun` as `np.ndarray`.
      keys: whether `fun` takes PRNG keys as their words; see `keys`.
    """

    fun: Callable[..., Any]
    is_decomposition: bool = False
    dtypes: frozenset[np.dtype] | None = None
    keep_constants: bool = False
    keys: bool = False


_RULES: dict[tuple[str, str], list[Rule]] = collections.defaultdict(list)


def _register(primitives: tuple[str, ...], target: targets.Target, rule_: Rule) -> None:
    for primitive in primitives:
        rules = _RULES[primitive, target.name]
        if any(other.dtypes == rule_.dtypes for other in rules):
            raise ValueError(f"{primitive!r} has two rules for target {target.name!r}")
        # Rules for some dtypes take precedence over the rule for all.
        rules.insert(0 if rule_.dtypes is not None else len(rules), rule_)


def _dtype_set(dtypes: Collection[Any] | None) -> frozenset[np.dtype] | None:
    return None if dtypes is None else frozenset(np.dtype(dtype) for dtype in dtypes)


def rule(
    *primitives: str,
    target: targets.Target = targets.TF,
    dtypes: Collection[Any] | None = None,
    keep_constants: bool = False,
    keys: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function `(ctx, *tensors, **params)` as the rule of `primitives`.

    Args:
      *primitives: names of JAX primitives.
      target: the target for which the rule is written; targets derived from it inherit it.
      dtypes: restricts the rule to operands[0] of these dtypes.
      keep_constants: pass operands that are known at lowering time as `np.ndarray`.
      keys: pass arrays of PRNG keys as their uint32 words, with a dimension for the words. Without
        it the rule sees keys as unsigned integers, which is all that a rule needs that moves them.
    """

    def decorate(fun):
        _register(primitives, target, Rule(fun, False, _dtype_set(dtypes), keep_constants, keys))
        return fun

    return decorate


def decomposition(
    *primitives: str,
    target: targets.Target = targets.TF,
    dtypes: Collection[Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a JAX function `(*operands, **params)` as the rule of `primitives`.

    It is traced with 64-bit types enabled, so it must name its dtypes. Arguments as for `rule`.
    """

    def decorate(fun):
        _register(primitives, target, Rule(fun, True, _dtype_set(dtypes)))
        return fun

    return decorate


_REFUSALS: dict[str, str] = {}


def refuse(*primitives: str, reason: str) -> None:
    """Declares that `primitives` are lowered for no target.

    Args:
      *primitives: names of JAX primitives.
      reason: why, and what to do instead; the error message has it.
    """
    _REFUSALS.update(dict.fromkeys(primitives, reason))


def refusal(primitive: str) -> str | None:
    """Why a primitive is lowered for no target; None if that has not been declared."""
    return _REFUSALS.get(primitive)


def lookup(primitive: str, target: targets.Target, dtype: Any = None) -> Rule | None:
    """The rule for a primitive whose first operand has `dtype`, or None."""
    name: str | None = target.name
    while name is not None:
        for rule_ in _RULES.get((primitive, name), ()):
            if rule_.dtypes is None or dtype in rule_.dtypes:
                return rule_
        name = targets.TARGETS[name].parent
    return None


def primitives(target: targets.Target = targets.TF) -> frozenset[str]:
    """The names of all primitives that have a rule on `target`."""
    chain = []
    name: str | None = target.name
    while name is not None:
        chain.append(name)
        name = targets.TARGETS[name].parent
    return frozenset(primitive for primitive, name in _RULES if name in chain)
