"""Folds batch norms by known statistics into the weights of the layers before them.

With known statistics a batch norm multiplies each feature by a number and adds another. The weights
and the bias of the dense layer or convolution before it absorb both, whatever its rank.
"""

from typing import Any, TypeAlias

import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering.passes.fusion.patterns import Uses
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter, replace_equations, without_unused

# A contraction, the axis of the features in its weights, the weights, and the bias behind it.
_Layer: TypeAlias = tuple[jex_core.JaxprEqn, int, np.ndarray, np.ndarray]


def fold_norms(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces batch norms behind contractions with known weights by other weights and a bias.

    Both are computed here, so that they are constants of the program however large they are.
    """
    known = _Known(jaxpr)

    def fold(new: Rewriter, norm: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        x, *statistics, epsilon = norm.invars
        found = [known.features(atom) for atom in statistics]
        layer, small = known.layer(x), known.array(epsilon)
        if layer is None or small is None or any(value is None for value in found):
            return None
        contraction, axis, weights, bias = layer
        mean, variance, scale, offset = (np.asarray(value, np.float64) for value in found)
        factor = scale / np.sqrt(variance + small)
        along = [-1 if i == axis else 1 for i in range(weights.ndim)]
        kernel = (weights * factor.reshape(along)).astype(np.float32)
        shift = ((bias - mean) * factor + offset).astype(np.float32)
        shift = shift.reshape([1] * (len(x.aval.shape) - 1) + [-1])
        product = jex_core.Var(x.aval)
        operands = [contraction.invars[0], new.constant(kernel)]
        new.add(contraction.replace(invars=operands, outvars=[product]))
        return norm.replace(primitive=lax.add_p, invars=[product, new.constant(shift)], params={})

    changed = replace_equations(jaxpr, {"batch_norm": fold})
    return jaxpr if changed is jaxpr else without_unused(changed)


class _Known:
    """What is known at lowering time of the variables of a jaxpr."""

    def __init__(self, jaxpr: Jaxpr):
        self._uses = Uses(jaxpr)
        consts = getattr(jaxpr, "consts", ())
        self._consts = dict(zip(jaxpr.constvars, consts, strict=True)) if consts else {}

    def array(self, atom: Any) -> np.ndarray | None:
        """The array that a constant has, or a view of one with as many elements."""
        if isinstance(atom, jex_core.Literal):
            return np.asarray(atom.val, atom.aval.dtype)
        if atom in self._consts:
            return np.asarray(self._consts[atom])
        maker = self._uses.maker(atom)
        if maker is None or maker.primitive.name not in ("broadcast_in_dim", "reshape"):
            return None
        value = self.array(maker.invars[0])
        if value is None or maker.params.get("dimensions") is not None or len(maker.invars) > 1:
            return None
        shape = atom.aval.shape
        return value.reshape(shape) if value.size == np.prod(shape) else None

    def features(self, atom: Any) -> np.ndarray | None:
        """The number of each feature (the last axis), if it is the same along the other axes."""
        size = atom.aval.shape[-1:]
        maker = self._uses.maker(atom)
        while maker is not None and maker.primitive.name == "broadcast_in_dim":
            to = maker.params["broadcast_dimensions"]
            if not to or to[-1] != len(maker.params["shape"]) - 1:
                return None
            (atom,) = maker.invars[:1]
            maker = self._uses.maker(atom)
        value = self.array(atom)
        is_by_feature = value is not None and value.shape[-1:] == size == (value.size,)
        return value.reshape(-1) if value is not None and is_by_feature else None

    def layer(self, x: Any) -> _Layer | None:
        """The layer whose result is used as `x` alone, if its weights are known."""
        maker = self._only_maker(x)
        if maker is None or maker.primitive.name != "add":
            return self._without_bias(maker)
        for product, other in (maker.invars, maker.invars[::-1]):
            layer = self._without_bias(self._only_maker(product))
            if layer is not None and product.aval.shape == x.aval.shape and other.aval.shape:
                bias = self.features(other)
                return None if bias is None else (*layer[:3], bias)
        return None

    def _only_maker(self, atom: Any) -> jex_core.JaxprEqn | None:
        is_shared = isinstance(atom, jex_core.Literal) or len(self._uses.used_by[atom]) != 1
        return None if is_shared else self._uses.maker(atom)

    def _without_bias(self, eqn: jex_core.JaxprEqn | None) -> _Layer | None:
        axis = None if eqn is None else _feature_axis(eqn)
        if eqn is None or axis is None:
            return None
        weights = self.array(eqn.invars[1])
        if weights is None or {weights.dtype, eqn.outvars[0].aval.dtype} != {np.dtype("float32")}:
            return None
        return eqn, axis, weights, np.zeros(())


def _feature_axis(eqn: jex_core.JaxprEqn) -> int | None:
    """The axis of the second operand that is the last one of the result; None if there is none."""
    last = len(eqn.outvars[0].aval.shape) - 1
    if eqn.primitive.name == "dot_general":
        (_, contracted), (_, batch) = eqn.params["dimension_numbers"]
        axes = range(len(eqn.invars[1].aval.shape))
        free = [axis for axis in axes if axis not in (*contracted, *batch)]
        return free[-1] if free and eqn.params.get("permutation") is None else None
    if eqn.primitive.name == "conv_general_dilated":
        numbers = eqn.params["dimension_numbers"]
        is_last = numbers.out_spec[1] == last and eqn.params["batch_group_count"] == 1
        return numbers.rhs_spec[0] if is_last else None
    return None
