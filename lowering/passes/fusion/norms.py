"""Folds what is done to each feature of a layer, such as a batch norm, into the layer's weights.

With known statistics a batch norm multiplies each feature by a number and adds another, in whatever
form a library writes it. The weights and the bias of the dense layer or convolution before it
absorb both, whatever its rank and wherever its features are. So they absorb any known factor.

Weights that the graph stores in 16 bits stay in 16 bits.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import short_floats
from lowering.arrays import narrow_numbers
from lowering.passes.evaluation import as_traced
from lowering.passes.fusion.patterns import Uses
from lowering.passes.jaxprs import Jaxpr, called_jaxprs, is_variable
from lowering.passes.rewriting import Rewriter, without_unused
from lowering.registry import Trait, has_trait

# What is not computed at lowering time.
_STAYING = (Trait.NOT_FOLDED, Trait.DRAWS, Trait.PER_DEVICE)

# More weights than these are not copied.
_MOST_WEIGHTS = 1 << 26

# Numbers for features are computed here from at most so many others.
_MOST_NUMBERS = 1 << 16

# And in at most so many steps, of which a norm takes four.
_MOST_STEPS = 8


class _Layer(NamedTuple):
    """A contraction with known weights."""

    eqn: jex_core.JaxprEqn
    operand: int  # The position of the weights among the operands,
    weights: np.ndarray
    weights_axis: int  # the axis of the features in these,
    axis: int  # and in the result.
    stored: np.dtype | None  # The dtype of 16 bits that the graph stores them in.


class _Fold(NamedTuple):
    """A layer, and the equations behind it that multiply and shift its features."""

    layer: _Layer
    chain: tuple[tuple[jex_core.JaxprEqn, Any], ...]  # Each with its operand that is of the layer.
    factor: np.ndarray  # A number for each feature, or one for all,
    shift: np.ndarray | None  # and what broadcasts to the result of the last equation.


def fold_norms(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces factors and batch norms behind contractions by other weights and a bias.

    Both are computed here, so that they are constants of the program however large they are.
    """
    folds = list(_folds(jaxpr))
    if not folds:
        return jaxpr
    layers = {id(fold.layer.eqn): fold for fold in folds}
    chained = {id(eqn): x for fold in folds for eqn, x in fold.chain}
    shifts = {id(fold.chain[-1][0]): fold.shift for fold in folds}
    new = Rewriter(jaxpr)
    for eqn in jaxpr.eqns:
        shift = shifts.get(id(eqn))
        if id(eqn) in layers:
            layer, _, factor, _ = layers[id(eqn)]
            invars = list(eqn.invars)
            invars[layer.operand] = _stored(new, layer, _multiplied(layer, factor))
            new.add(eqn.replace(invars=invars))
        elif shift is not None:
            invars = [chained[id(eqn)], new.constant(shift)]
            new.add(eqn.replace(primitive=lax.add_p, invars=invars, params={}))
        elif id(eqn) in chained:
            new.replace(eqn.outvars, [chained[id(eqn)]])
        else:
            new.add(eqn)
    return without_unused(new.jaxpr())


def _folds(jaxpr: Jaxpr) -> Iterator[_Fold]:
    known = _Known(jaxpr)
    for eqn in jaxpr.eqns:
        layer = known.layer(eqn)
        fold = None if layer is None else known.fold(layer)
        if fold is not None and np.isfinite(_multiplied(fold.layer, fold.factor)).all():
            yield fold


def _multiplied(layer: _Layer, factor: np.ndarray) -> np.ndarray:
    along = [-1 if i == layer.weights_axis else 1 for i in range(layer.weights.ndim)]
    with np.errstate(over="ignore"):
        return (layer.weights * factor.reshape(along)).astype(np.float32)


def _stored(new: Rewriter, layer: _Layer, weights: np.ndarray) -> jex_core.Var:
    """Weights of a layer as a constant; in 16 bits if those before were."""
    for dtype in () if layer.stored is None else (np.dtype(np.float16), layer.stored):
        narrow = short_floats.rounded(weights, dtype, layer.weights_axis)
        if narrow is not None:
            widened = jex_core.Var(jax.core.ShapedArray(weights.shape, weights.dtype))
            params = {"storage": weights.dtype}
            widen = layer.eqn.replace(primitive=narrow_numbers.WIDEN, params=params)
            new.add(widen.replace(invars=[new.constant(narrow)], outvars=[widened]))
            return widened
    return new.constant(weights)


class _Known:
    """What is known at lowering time of the variables of a jaxpr."""

    def __init__(self, jaxpr: Jaxpr):
        self._uses = Uses(jaxpr)
        consts = getattr(jaxpr, "consts", ())
        self._consts = dict(zip(jaxpr.constvars, consts, strict=True)) if consts else {}

    def layer(self, eqn: jex_core.JaxprEqn) -> _Layer | None:
        """The layer that an equation is, if its weights are known and nothing else uses them."""
        for operand, weights_axis, axis in _feature_axes(eqn):
            atom = eqn.invars[operand]
            weights = self._view(atom)
            if weights is None or weights.size > _MOST_WEIGHTS or not self._is_used_once(atom):
                continue
            if {weights.dtype, eqn.outvars[0].aval.dtype} == {np.dtype(np.float32)}:
                stored = self._stored_dtype(atom)
                return _Layer(eqn, operand, weights, weights_axis, axis, stored)
        return None

    def fold(self, layer: _Layer) -> _Fold | None:
        """The longest chain of equations behind a layer that its weights and a bias absorb."""
        (x,), axis = layer.eqn.outvars, layer.axis
        factor, shift = np.ones(1), np.zeros([1] * len(x.aval.shape))
        chain: list[tuple[jex_core.JaxprEqn, Any]] = []
        fold = None
        while (eqn := self._only_user(x)) is not None:
            moved = _moved_axis(eqn, x, axis)
            if moved is not None:
                (x,) = eqn.outvars
                if eqn.primitive.name == "transpose":
                    shift = shift.transpose(eqn.params["permutation"])
                elif shift.size == shift.shape[axis]:
                    shift = _along(shift, moved, x)
                else:
                    break
                axis = moved
                continue
            step = self._step(eqn, x, axis)
            if step is None:
                break
            factor, shift = factor * step[0], shift * _along(step[0], axis, x) + step[1]
            chain.append((eqn, x))
            (x,) = eqn.outvars
            names = [other.primitive.name for other, _ in chain]
            adds = not _SHIFTING.isdisjoint(names)
            if len(names) + names.count("batch_norm") > adds and np.isfinite(shift).all():
                fold = _Fold(
                    layer, tuple(chain), factor, shift.astype(np.float32) if adds else None
                )
        return fold

    def _step(self, eqn: jex_core.JaxprEqn, x: Any, axis: int) -> tuple[Any, Any] | None:
        """What an equation multiplies the features of `x` by, and then adds to `x`."""
        name, operands = eqn.primitive.name, eqn.invars
        if name not in _STEPS or eqn.outvars[0].aval.shape != x.aval.shape:
            return None
        places = [i for i, y in enumerate(operands) if y is x]
        if len(places) != 1 or (places != [0] and name in _OF_FIRST):
            return None
        numbers: list[Any] = [self._spread(y, x) for y in operands if y is not x]
        if any(y is None for y in numbers):
            return None
        if name not in _ADDING:
            if not all(y.size == y.shape[axis] for y in numbers):
                return None
            numbers = [y.reshape(-1) for y in numbers]
        with np.errstate(all="ignore"):
            factor, shift = _STEPS[name](*numbers, is_first=places == [0])
        return factor, shift if name in _ADDING else _along(shift, axis, x)

    def _spread(self, atom: Any, like: Any) -> np.ndarray | None:
        """The numbers that broadcast to an operand beside `like`, in as many axes as that has."""
        value, rank = self._unbroadcast(atom), len(like.aval.shape)
        if value is None or value.dtype != np.float32 or value.ndim not in (0, rank):
            return None
        return value.reshape(value.shape or [1] * rank).astype(np.float64)

    def _unbroadcast(self, atom: Any) -> np.ndarray | None:
        """A known array, with a size of one along axes that it is broadcast along."""
        maker = self._uses.maker(atom)
        if maker is None or maker.primitive.name != "broadcast_in_dim":
            return self._array(atom)
        value = self._unbroadcast(maker.invars[0])
        if value is None:
            return None
        sizes = dict(zip(maker.params["broadcast_dimensions"], value.shape, strict=True))
        return value.reshape([sizes.get(i, 1) for i in range(len(atom.aval.shape))])

    def _array(self, atom: Any, steps: int = _MOST_STEPS) -> np.ndarray | None:
        """The array that an atom is, if few steps compute it from few known numbers."""
        value, eqn = self._view(atom), self._uses.maker(atom)
        if value is not None or eqn is None or not steps or not _is_computed_here(eqn):
            return value
        operands = [self._array(x, steps - 1) for x in eqn.invars]
        if any(x is None for x in operands):
            return None
        try:
            with jax.ensure_compile_time_eval():
                return np.asarray(as_traced(eqn, operands))
        except NotImplementedError:  # A primitive of ours, which JAX does not compute.
            return None

    def _view(self, atom: Any) -> np.ndarray | None:
        """The array that a constant has, or a view of one with as many elements."""
        if isinstance(atom, jex_core.Literal):
            return np.asarray(atom.val, atom.aval.dtype)
        if atom in self._consts:
            return np.asarray(self._consts[atom])
        maker = self._uses.maker(atom)
        if maker is None or maker.primitive.name not in _VIEWS:
            return None
        value = self._view(maker.invars[0])
        if value is not None and maker.primitive is narrow_numbers.WIDEN:
            return value.astype(maker.params["storage"])
        if value is None or maker.params.get("dimensions") is not None or len(maker.invars) > 1:
            return None
        shape = atom.aval.shape
        return value.reshape(shape) if value.size == math.prod(shape) else None

    def _stored_dtype(self, atom: Any) -> np.dtype | None:
        """The dtype of a constant that is widened in the graph; see `_view`."""
        maker = self._uses.maker(atom)
        if maker is None:
            return None
        (before, *_) = maker.invars
        is_widened = maker.primitive is narrow_numbers.WIDEN
        return before.aval.dtype if is_widened else self._stored_dtype(before)

    def _is_used_once(self, atom: Any) -> bool:
        """Whether one equation uses a variable, and what it is a view of."""
        if not is_variable(atom) or len(self._uses.used_by[atom]) != 1:
            return False
        maker = self._uses.maker(atom)
        return maker is None or self._is_used_once(maker.invars[0])

    def _only_user(self, var: Any) -> jex_core.JaxprEqn | None:
        users = self._uses.used_by[var]
        return users[0] if len(users) == 1 else None


def _is_computed_here(eqn: jex_core.JaxprEqn) -> bool:
    """Whether an equation computes few numbers from others, and that alone."""
    sizes = [size for var in eqn.outvars for size in getattr(var.aval, "shape", ())]
    is_small = all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= _MOST_NUMBERS
    is_pure = not eqn.effects and not any(True for _ in called_jaxprs(eqn))
    stays = any(has_trait(eqn.primitive.name, trait) for trait in _STAYING)
    return is_small and is_pure and not stays and len(eqn.outvars) == 1


def _along(numbers: Any, axis: int, x: Any) -> np.ndarray:
    """Numbers along an axis of a variable, or one number, in as many axes as that has."""
    return np.reshape(numbers, [-1 if i == axis else 1 for i in range(len(x.aval.shape))])


def _add(y, is_first):
    return 1.0, y


def _sub(y, is_first):
    return (1.0, -y) if is_first else (-1.0, y)


def _mul(y, is_first):
    return y, 0.0


def _div(y, is_first):
    return 1 / y, 0.0


def _batch_norm(mean, variance, scale, offset, epsilon, is_first):
    factor = scale / np.sqrt(variance + epsilon)
    return factor, offset - mean * factor


# For a primitive, the factor and the shift that it means for features.
_STEPS: Mapping[str, Callable[..., tuple[Any, Any]]] = {
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "batch_norm": _batch_norm,
}
# What has the elements of a constant, in their order.
_VIEWS = ("broadcast_in_dim", "reshape", "widen")
_ADDING = frozenset({"add", "sub"})
_SHIFTING = _ADDING | {"batch_norm"}
_OF_FIRST = frozenset({"div", "batch_norm"})


def _moved_axis(eqn: jex_core.JaxprEqn, x: Any, axis: int) -> int | None:
    """Where an equation that moves elements leaves the features; None if it does anything else."""
    name, (out, *_) = eqn.primitive.name, eqn.outvars
    if name == "transpose":
        return list(eqn.params["permutation"]).index(axis)
    if name == "squeeze" or (name == "reshape" and eqn.params["dimensions"] is None):
        before, after = x.aval.shape, out.aval.shape
        from_end = len(before) - axis
        is_kept = from_end <= len(after) and before[axis:] == after[-from_end:]
        return len(after) - from_end if is_kept else None
    return None


def _feature_axes(eqn: jex_core.JaxprEqn) -> Iterator[tuple[int, int, int]]:
    """For each operand that may be weights: its position, and its axis and that of the features."""
    if eqn.primitive.name == "conv_general_dilated" and eqn.params["batch_group_count"] == 1:
        numbers = eqn.params["dimension_numbers"]
        yield 1, numbers.rhs_spec[0], numbers.out_spec[1]
    if eqn.primitive.name != "dot_general":
        return
    places = list(range(len(eqn.outvars[0].aval.shape)))
    places = [places.index(place) for place in eqn.params.get("permutation") or places]
    numbers = eqn.params["dimension_numbers"]
    batch, count = len(numbers[1][0]), 0
    for operand, contracted, batched in zip((0, 1), *numbers, strict=True):
        axes = range(len(eqn.invars[operand].aval.shape))
        free = [axis for axis in axes if axis not in (*contracted, *batched)]
        count += len(free)
        if free:
            yield operand, free[-1], places.index(batch + count - 1)
