"""Groups of equations that TensorFlow has one op for.

A group is replaced by one equation before its jaxpr is lowered: either of a primitive that JAX
lacks, with a rule like any other, or of its first primitive, with a parameter more.
"""

import collections
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax.extend.core as jex_core
import numpy as np

# The equation that makes a variable, if it is of a given primitive and nothing else needs it.
Maker = Callable[[Any, str], jex_core.JaxprEqn | None]

_BATCH_NORM = jex_core.Primitive("batch_norm")


@functools.lru_cache(maxsize=1024)
def fused(jaxpr: jex_core.ClosedJaxpr) -> Sequence[jex_core.JaxprEqn]:
    """The equations of a jaxpr, groups fused.

    Args:
      jaxpr: a closed jaxpr without dead code.
    """
    atoms = [*(atom for eqn in jaxpr.eqns for atom in eqn.invars), *jaxpr.outvars]
    uses = collections.Counter(atom for atom in atoms if isinstance(atom, jex_core.Var))
    made_by = {eqn.outvars[0]: eqn for eqn in jaxpr.eqns if len(eqn.outvars) == 1}
    replaced: dict[int, jex_core.JaxprEqn | None] = {}

    for last in jaxpr.eqns:
        for pattern in _PATTERNS.get(last.primitive.name, ()):
            group = [last]

            def maker(atom, primitive, group=group):
                if isinstance(atom, jex_core.Literal) or uses[atom] != 1 or atom not in made_by:
                    return None
                eqn = made_by[atom]
                if eqn.primitive.name != primitive or id(eqn) in replaced:
                    return None
                group.append(eqn)
                return eqn

            eqn = pattern(last, maker)
            if eqn is not None:
                replaced.update({id(part): None for part in group})
                replaced[id(last)] = eqn
                break
    equations = (replaced.get(id(eqn), eqn) for eqn in jaxpr.eqns)
    return tuple(eqn for eqn in equations if eqn is not None)


def _batch_norm(add: jex_core.JaxprEqn, maker: Maker) -> jex_core.JaxprEqn | None:
    """`(x - mean) * scale + offset`, the last three per feature: `batch_norm x mean scale offset`.

    Of float32 images with the features last, as TensorFlow's kernels take them.
    """
    shape, dtype = add.outvars[0].aval.shape, add.outvars[0].aval.dtype
    if dtype != np.float32 or len(shape) != 4:
        return None

    def operands(eqn):
        """The image and the values per feature that an equation takes, in either order."""
        if eqn is None:
            return None
        pair = sorted(eqn.invars, key=lambda atom: atom.aval.shape != shape)
        shapes = [atom.aval.shape for atom in pair]
        return pair if shapes == [shape, (1, 1, 1, shape[-1])] and shapes[0] != shapes[1] else None

    if (shifted := operands(add)) is None:
        return None
    if (scaled := operands(maker(shifted[0], "mul"))) is None:
        return None
    sub = maker(scaled[0], "sub")
    if (centered := operands(sub)) is None or centered != list(sub.invars):
        return None
    x, mean = centered
    return add.replace(primitive=_BATCH_NORM, invars=[x, mean, scaled[1], shifted[1]], params={})


def _transposed_product(transpose: jex_core.JaxprEqn, maker: Maker) -> jex_core.JaxprEqn | None:
    """A `dot_general` whose `permutation` is the order of the axes of its result."""
    product = maker(transpose.invars[0], "dot_general")
    if product is None:
        return None
    params = {**product.params, "permutation": transpose.params["permutation"]}
    return product.replace(outvars=transpose.outvars, params=params)


_PATTERNS = {"add": (_batch_norm,), "transpose": (_transposed_product,)}
