"""Groups of equations that TensorFlow has one op for, or that fewer ops can do.

Before a jaxpr is lowered, a group is replaced by equations with the same results: of primitives
that JAX lacks, with rules like any other, or of its own.
"""

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

_BATCH_NORM = jex_core.Primitive("batch_norm")
_SOFTMAX = jex_core.Primitive("softmax")


@functools.lru_cache(maxsize=1024)
def fused(jaxpr: jex_core.ClosedJaxpr) -> Sequence[jex_core.JaxprEqn]:
    """The equations of a jaxpr, groups replaced.

    Args:
      jaxpr: a closed jaxpr.
    """
    uses = _Uses(jaxpr)
    replaced: dict[int, Sequence[jex_core.JaxprEqn]] = {}
    for eqn in jaxpr.eqns:
        pattern = _PATTERNS.get(eqn.primitive.name)
        if pattern is None:
            continue
        group = _Group(uses, eqn)
        equations = pattern(eqn, group)
        if equations is not None and not any(id(part) in replaced for part in group.parts):
            replaced.update({id(part): () for part in group.parts})
            replaced[id(eqn)] = equations
    return tuple(new for eqn in jaxpr.eqns for new in replaced.get(id(eqn), (eqn,)))


class _Uses:
    """Which equations make and use the variables of a jaxpr."""

    def __init__(self, jaxpr: jex_core.ClosedJaxpr):
        self.position = {id(eqn): i for i, eqn in enumerate(jaxpr.eqns)}
        self.made_by = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
        self.used_by: dict[Any, list[Any]] = collections.defaultdict(list)
        for eqn in (*jaxpr.eqns, None):
            for atom in jaxpr.outvars if eqn is None else eqn.invars:
                if isinstance(atom, jex_core.Var):
                    self.used_by[atom].append(eqn)


class _Group:
    """The equations that a pattern has found, starting with one."""

    def __init__(self, uses: _Uses, eqn: jex_core.JaxprEqn):
        self._uses = uses
        self.parts = [eqn]

    def maker(self, atom: Any, primitive: str, times: int = 1) -> jex_core.JaxprEqn | None:
        """The equation that makes a variable, now part of the group.

        Args:
          atom: a variable or literal.
          primitive: the primitive that it must be of.
          times: how often the variable must be used, so that the group is all that needs it.

        Returns:
          The equation, or None.
        """
        eqn = None if isinstance(atom, jex_core.Literal) else self._uses.made_by.get(atom)
        if eqn is None or eqn.primitive.name != primitive or len(self._uses.used_by[atom]) != times:
            return None
        self.parts.append(eqn)
        return eqn

    def is_last(self, eqn: jex_core.JaxprEqn, primitive: str) -> bool:
        """Whether no equation of a primitive in the group comes after one."""
        position = self._uses.position
        others = (part for part in self.parts if part.primitive.name == primitive)
        return all(position[id(part)] <= position[id(eqn)] for part in others)

    def user(self, var: jex_core.Var, primitive: str) -> jex_core.JaxprEqn | None:
        """The only equation that uses a variable, now part of the group, if of a primitive."""
        users = self._uses.used_by[var]
        if len(users) != 1 or users[0] is None or users[0].primitive.name != primitive:
            return None
        self.parts.append(users[0])
        return users[0]


Pattern = Callable[[jex_core.JaxprEqn, _Group], Sequence[jex_core.JaxprEqn] | None]


def _batch_norm(add: jex_core.JaxprEqn, group: _Group) -> Sequence[jex_core.JaxprEqn] | None:
    """`(x - mean) * (rsqrt(variance + epsilon) * scale) + offset`, all but `x` per feature.

    Of float32 images with the features last, as TensorFlow's kernels take them.
    """
    shape, dtype = add.outvars[0].aval.shape, add.outvars[0].aval.dtype
    if dtype != np.float32 or len(shape) != 4 or shape[:3] == (1, 1, 1):
        return None

    def by_feature(eqn):
        """The image and the values per feature that an equation takes."""
        pair = sorted(eqn.invars, key=lambda atom: atom.aval.shape != shape) if eqn else ()
        shapes = [atom.aval.shape for atom in pair]
        return pair if shapes == [shape, (1, 1, 1, shape[-1])] else (None, None)

    scaled, offset = by_feature(add)
    centered, factor = by_feature(scaled and group.maker(scaled, "mul"))
    sub = centered and group.maker(centered, "sub")
    x, mean = by_feature(sub)
    if x is None or [x, mean] != list(sub.invars):
        return None
    product = group.maker(factor, "mul")
    root = product and group.maker(product.invars[0], "rsqrt")
    shifted = root and group.maker(root.invars[0], "add")
    if not shifted or not isinstance(shifted.invars[1], jex_core.Literal):
        return None
    variance, epsilon = shifted.invars
    scale = product.invars[1]
    if not variance.aval.shape == scale.aval.shape == offset.aval.shape:
        return None
    return [
        add.replace(
            primitive=_BATCH_NORM,
            invars=[x, mean, variance, scale, offset],
            params={"epsilon": float(epsilon.val)},
        )
    ]


def _softmax(div: jex_core.JaxprEqn, group: _Group) -> Sequence[jex_core.JaxprEqn] | None:
    """`exp(x - max(x)) / sum(exp(x - max(x)))` along the last axis."""
    aval = div.outvars[0].aval
    axis = len(aval.shape) - 1

    def keeps_axis(eqn):
        """Whether an equation restores the last axis, which a reduction has removed."""
        places = eqn.params["broadcast_dimensions"]
        return eqn.params["shape"] == (*aval.shape[:-1], 1) and places == tuple(range(axis))

    if aval.dtype not in (np.float32, np.float64) or axis < 0:
        return None
    exp = group.maker(div.invars[0], "exp", times=2)
    total = exp and group.maker(div.invars[1], "broadcast_in_dim")
    if not total or not keeps_axis(total):
        return None
    total = group.maker(total.invars[0], "reduce_sum")
    sub = total and total.invars[0] is exp.outvars[0] and group.maker(exp.invars[0], "sub")
    if not sub or total.params["axes"] != (axis,):
        return None
    x, atom = sub.invars
    stopped = group.maker(atom, "stop_gradient")
    kept = group.maker(stopped.invars[0] if stopped else atom, "broadcast_in_dim")
    if not kept or not keeps_axis(kept):
        return None
    atom = kept.invars[0]
    bounded = group.maker(atom, "max")
    if bounded:
        low, atom = bounded.invars
        if not isinstance(low, jex_core.Literal) or low.val != -np.inf:
            return None
    largest = group.maker(atom, "reduce_max")
    if not largest or largest.params["axes"] != (axis,) or largest.invars[0] is not x:
        return None
    return [div.replace(primitive=_SOFTMAX, invars=[x], params={})]


def _transposed_product(
    transpose: jex_core.JaxprEqn, group: _Group
) -> Sequence[jex_core.JaxprEqn] | None:
    """A `dot_general` whose `permutation` is the order of the axes of its result."""
    product = group.maker(transpose.invars[0], "dot_general")
    if product is None:
        return None
    params = {**product.params, "permutation": transpose.params["permutation"]}
    return [product.replace(outvars=transpose.outvars, params=params)]


def _sum_of_splits(split: jex_core.JaxprEqn, group: _Group) -> Sequence[jex_core.JaxprEqn] | None:
    """The sums of the parts of two arrays, as the parts of their sum; what gates are made of."""
    adds = [group.user(var, "add") for var in split.outvars]
    if None in adds:
        return None
    others = [
        [atom for atom in add.invars if atom is not var]
        for add, var in zip(adds, split.outvars, strict=True)
    ]
    if any(len(atoms) != 1 for atoms in others):
        return None
    makers = [group.maker(atom, "split") for (atom,) in others]
    first = makers[0]
    if (
        first is None
        or any(maker is not first for maker in makers)
        or [atom for (atom,) in others] != first.outvars
        or first.params != split.params
        or not group.is_last(split, "split")
    ):
        return None
    (x,), (y,) = first.invars, split.invars
    if x.aval.shape != y.aval.shape:
        return None
    total = jex_core.Var(y.aval)
    return [
        adds[0].replace(invars=[x, y], outvars=[total]),
        split.replace(invars=[total], outvars=[add.outvars[0] for add in adds]),
    ]


_PATTERNS: dict[str, Pattern] = {
    "add": _batch_norm,
    "div": _softmax,
    "transpose": _transposed_product,
    "split": _sum_of_splits,
}
