"""Moves transposes in front of reductions, and into products or directly behind these.

JAX maps attention over groups of heads. So the axes of the groups come first in a transposed array
and in its transposed maxima, and no pattern finds a softmax in these.
"""

from typing import Any

import jax.extend.core as jex_core

from lowering.passes.fusion.patterns import Group, Uses, fuse
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter, replace_equations, without_unused
from lowering.registry import Trait, has_trait

_REDUCTIONS = ("reduce_max", "reduce_min", "reduce_sum", "reduce_prod")


def lift_transposes(jaxpr: Jaxpr) -> Jaxpr:
    """Moves transposes before reductions and elementwise equations, where it saves transposes."""
    if not any(eqn.primitive.name == "transpose" for eqn in jaxpr.eqns):
        return jaxpr
    joined = fuse(jaxpr, (), {"transpose": _joined})
    return _into_products(_behind_products(_before_reductions(joined)))


def _joined(transpose: jex_core.JaxprEqn, group: Group) -> list[jex_core.JaxprEqn] | None:
    """Merges two transposes."""
    inner = group.maker(transpose.invars[0], "transpose")
    if inner is None:
        return None
    order = tuple(inner.params["permutation"][axis] for axis in transpose.params["permutation"])
    return [transpose.replace(invars=inner.invars, params={"permutation": order})]


def _before_reductions(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces the transpose of a reduction by the reduction of a transposed operand.

    Only where the operand is transposed alike anyway, for another use.
    """
    uses = Uses(jaxpr)
    # By the last equation of a chain that is replaced: the chain, and the transpose that is kept.
    found = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in _REDUCTIONS and (chain := _until_transpose(eqn, uses)):
            like = _transposed_alike(eqn, chain[-1], uses)
            if like is not None:
                found[id(chain[-1])] = chain, like
    if not found:
        return jaxpr
    new = Rewriter(jaxpr)
    gone = {id(eqn) for chain, _ in found.values() for eqn in chain}
    done: set[int] = set()
    for eqn in jaxpr.eqns:
        if id(eqn) in found:
            (reduce, *between, last), like = found[id(eqn)]
            if id(like) not in done:
                new.add(like)
                done.add(id(like))
            order = list(like.params["permutation"])
            axes = tuple(sorted(order.index(axis) for axis in reduce.params["axes"]))
            out = jex_core.Var(last.outvars[0].aval)
            new.add(
                reduce.replace(
                    invars=like.outvars, outvars=[out], params={**reduce.params, "axes": axes}
                )
            )
            for old in between:
                invars = [x if not x.aval.shape else out for x in old.invars]
                out = jex_core.Var(last.outvars[0].aval)
                new.add(old.replace(invars=invars, outvars=[out]))
            new.replace(last.outvars, [out])
        elif id(eqn) not in gone and id(eqn) not in done:
            new.add(eqn)
            done.add(id(eqn))
    return new.jaxpr()


def _until_transpose(reduce: jex_core.JaxprEqn, uses: Uses) -> list[jex_core.JaxprEqn]:
    """A reduction, elementwise equations with numbers, and a transpose; each is used once."""
    chain = [reduce]
    while len(users := uses.used_by[chain[-1].outvars[0]]) == 1 and users[0] is not None:
        chain.append(users[0])
        if users[0].primitive.name == "transpose":
            return chain
        if not _is_of_one(users[0]):
            break
    return []


def _is_of_one(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation computes with the elements of one array, and numbers."""
    arrays = [x for x in eqn.invars if getattr(x.aval, "shape", ())]
    (*outs,) = eqn.outvars
    return (
        has_trait(eqn.primitive.name, Trait.ELEMENTWISE)
        and len(arrays) == len(outs) == 1
        and outs[0].aval.shape == arrays[0].aval.shape
        and outs[0].aval.dtype == arrays[0].aval.dtype
    )


def _transposed_alike(
    reduce: jex_core.JaxprEqn, last: jex_core.JaxprEqn, uses: Uses
) -> jex_core.JaxprEqn | None:
    """A transpose of what is reduced that has the axes that are left in the same order."""
    (x,), axes = reduce.invars, reduce.params["axes"]
    if isinstance(x, jex_core.Literal):
        return None
    kept = [axis for axis in range(len(x.aval.shape)) if axis not in axes]
    order = [kept[i] for i in last.params["permutation"]]
    for user in uses.used_by[x]:
        if user is None or user.primitive.name != "transpose":
            continue
        if [axis for axis in user.params["permutation"] if axis not in axes] == order:
            return user
    return None


def _behind_products(jaxpr: Jaxpr) -> Jaxpr:
    """Transposes products before elementwise equations with scalars, not after these."""
    uses = Uses(jaxpr)
    # By an equation: its chain, and the transpose that moves in front of it.
    orders: dict[int, Any] = {}
    gone = set()
    for eqn in jaxpr.eqns:
        if eqn.primitive.name != "transpose":
            continue
        chain = _from_product(eqn, uses)
        if chain:
            orders.update({id(part): (chain, eqn) for part in chain})
            gone.add(id(eqn))
    if not gone:
        return jaxpr
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        if id(eqn) in gone:
            continue
        if id(eqn) not in orders:
            new.add(eqn)
            continue
        chain, transpose = orders[id(eqn)]
        if eqn.primitive.name == "dot_general":
            new.add(eqn)
            out = jex_core.Var(_permuted(eqn.outvars[0], transpose))
            new.add(transpose.replace(invars=eqn.outvars, outvars=[out]))
        else:
            out = jex_core.Var(_permuted(eqn.outvars[0], transpose))
            new.add(eqn.replace(outvars=[out]))
        new.replace(eqn.outvars, [out])
        if eqn is chain[0]:
            new.replace(transpose.outvars, [out])
    return new.jaxpr()


def _from_product(transpose: jex_core.JaxprEqn, uses: Uses) -> list[jex_core.JaxprEqn]:
    """The elementwise equations with numbers before a transpose, and the product before them.

    The last of them comes first; each is used once.
    """
    chain: list[jex_core.JaxprEqn] = []
    atom = transpose.invars[0]
    while (maker := uses.maker(atom)) is not None and len(uses.used_by[atom]) == 1:
        chain.append(maker)
        if maker.primitive.name == "dot_general":
            return chain if len(chain) > 1 else []
        if not _is_of_one(maker):
            break
        (atom,) = (x for x in maker.invars if x.aval.shape)
    return []


def _permuted(var: jex_core.Var, transpose: jex_core.JaxprEqn) -> Any:
    shape = tuple(var.aval.shape[axis] for axis in transpose.params["permutation"])
    return var.aval.update(shape=shape)


def _into_products(jaxpr: Jaxpr) -> Jaxpr:
    """Contracts other axes of a matrix in place of those of its transpose.

    Only where the other axes stay in their order, which is that of the result.
    """
    uses = Uses(jaxpr)

    def absorb(_, product: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        contracted, batch = map(list, product.params["dimension_numbers"])
        operands = list(product.invars)
        for i, x in enumerate(operands):
            transpose = uses.maker(x, "transpose")
            if transpose is None or len(uses.used_by[x]) != 1:
                continue
            if uses.maker(transpose.invars[0], "dot_general") is not None:
                continue  # That gives its result in another order.
            order = transpose.params["permutation"]
            free = [axis for k, axis in enumerate(order) if k not in (*contracted[i], *batch[i])]
            if free == sorted(free):
                operands[i] = transpose.invars[0]
                contracted[i] = tuple(order[axis] for axis in contracted[i])
                batch[i] = tuple(order[axis] for axis in batch[i])
        if operands == list(product.invars):
            return None
        numbers = (tuple(contracted), tuple(batch))
        params = {**product.params, "dimension_numbers": numbers}
        return product.replace(invars=operands, params=params)

    changed = replace_equations(jaxpr, {"dot_general": absorb})
    return jaxpr if changed is jaxpr else without_unused(changed)
