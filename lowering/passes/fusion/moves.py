"""Groups of equations that only move elements, for which TensorFlow has one op.

JAX pads by mirror images one end after the other, moves pixels to channels by reshapes around a
transpose, and takes an index by a slice of size one without its axis.
"""

from typing import Any

import jax
import jax.extend.core as jex_core

from lowering import registry
from lowering.passes.fusion.patterns import Group, Uses, fuse
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import replace_equations, without_unused
from lowering.targets import Target

_MIRROR_PAD = registry.new_primitive("mirror_pad")
_DEPTH_TO_SPACE = registry.new_primitive("depth_to_space")
_SPACE_TO_DEPTH = registry.new_primitive("space_to_depth")
SLICE_AND_SQUEEZE = registry.new_primitive("slice_and_squeeze")

_Paddings = tuple[tuple[int, int], ...]

# TensorFlow's kernel of MirrorPad takes no more axes, and runtimes no more than these.
_MOST_AXES = 5
_MOST_AXES_OF_RUNTIMES = 4


@_MIRROR_PAD.def_abstract_eval
def _padded(x, *, paddings, repeats_ends):
    shape = tuple(dim + sum(pair) for dim, pair in zip(x.shape, paddings, strict=True))
    return jax.core.ShapedArray(shape, x.dtype)


@_DEPTH_TO_SPACE.def_abstract_eval
def _spread(x, *, block):
    batch, rows, columns, depth = x.shape
    shape = batch, rows * block, columns * block, depth // block**2
    return jax.core.ShapedArray(shape, x.dtype)


@_SPACE_TO_DEPTH.def_abstract_eval
def _gathered(x, *, block):
    batch, rows, columns, depth = x.shape
    shape = batch, rows // block, columns // block, depth * block**2
    return jax.core.ShapedArray(shape, x.dtype)


@SLICE_AND_SQUEEZE.def_abstract_eval
def _sliced(x, *, start_indices, limit_indices, dimensions):
    bounds = zip(start_indices, limit_indices, strict=True)
    shape = tuple(high - low for i, (low, high) in enumerate(bounds) if i not in dimensions)
    return jax.core.ShapedArray(shape, x.dtype)


def _has_op(target: Target, op: str, x: Any) -> bool:
    """Whether a target has an op for an array; a runtime has those in its table."""
    rank = len(x.aval.shape)
    if not target.is_consumer:
        return rank <= _MOST_AXES
    return rank <= _MOST_AXES_OF_RUNTIMES and x.aval.dtype.name in target.ops.get(op, ())


def with_mirror_pads(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Replaces concatenations of an array with the mirror images of its ends."""
    uses = Uses(jaxpr)
    # By the padded array: what is padded, how much, and whether the ends are repeated.
    padded: dict[Any, tuple[Any, _Paddings, bool]] = {}

    def mirror_pad(_, concatenate):
        found = _mirrored(concatenate, uses)
        if found is None:
            return None
        x, paddings, repeats_ends = found
        can_repeat = target.repeats_padded_ends or not repeats_ends
        if not can_repeat or not _has_op(target, "MirrorPad", x):
            return None
        if x in padded:
            inner, before, did_repeat = padded[x]
            both = tuple((a + c, b + d) for (a, b), (c, d) in zip(before, paddings, strict=True))
            # What is padded must not be mirrored again: not its images, nor around another end.
            is_new = not any(
                p and q for p, q in zip(sum(before, ()), sum(paddings, ()), strict=True)
            )
            fits = _fits(inner.aval.shape, both, repeats_ends)
            if is_new and fits and did_repeat == repeats_ends:
                x, paddings = inner, both
        padded[concatenate.outvars[0]] = x, paddings, repeats_ends
        params = {"paddings": paddings, "repeats_ends": repeats_ends}
        return concatenate.replace(primitive=_MIRROR_PAD, invars=[x], params=params)

    new = replace_equations(jaxpr, {"concatenate": mirror_pad})
    return without_unused(new) if padded else jaxpr


def _fits(shape, paddings, repeats_ends):
    """Whether an array has as many elements as are mirrored, on its padded axes."""
    return all(
        not any(pair) or (isinstance(dim, int) and max(pair) <= dim - (not repeats_ends))
        for dim, pair in zip(shape, paddings, strict=True)
    )


def _mirrored(concatenate, uses):
    """What a concatenation pads, how much, and whether ends are repeated; None if it is no pad."""
    axis = concatenate.params["dimension"]
    if len(concatenate.invars) != 2:
        return None
    for is_before, (x, image) in ((False, concatenate.invars), (True, concatenate.invars[::-1])):
        reverse = uses.maker(image, "rev")
        if reverse is None:
            continue
        cut = uses.maker(reverse.invars[0], "slice")
        if (
            reverse.params["dimensions"] != (axis,)
            or cut is None
            or cut.invars[0] is not x
            or not _is_plain(cut.params["strides"])
        ):
            continue
        start, limit, size = _bounds(cut, axis)
        others = [i for i in range(len(x.aval.shape)) if i != axis]
        if not isinstance(size, int) or any(not _is_whole(cut, i) for i in others):
            continue
        amount = limit - start
        for repeats_ends in (False, True):
            skipped = 0 if repeats_ends else 1
            expected = skipped if is_before else size - amount - skipped
            if start == expected:
                pair = (amount, 0) if is_before else (0, amount)
                paddings = tuple(pair if i == axis else (0, 0) for i in range(len(others) + 1))
                return x, paddings, repeats_ends
    return None


def _bounds(cut, axis):
    start, limit = (cut.params[f"{name}_indices"][axis] for name in ("start", "limit"))
    return start, limit, cut.invars[0].aval.shape[axis]


def _is_whole(cut, axis):
    start, limit, size = _bounds(cut, axis)
    return start == 0 and limit == size


def _is_plain(strides):
    return strides is None or all(stride == 1 for stride in strides)


# How channels, and the rows and columns in them, are moved to places of their own, and back.
_PERMUTATION = (0, 1, 3, 2, 4, 5)


def _moved_pixels(
    last: jex_core.JaxprEqn, group: Group, target: Target
) -> list[jex_core.JaxprEqn] | None:
    """A transpose between reshapes that moves blocks of pixels to channels, or back."""
    transpose = group.maker(last.invars[0], "transpose")
    if transpose is None or transpose.params["permutation"] != _PERMUTATION:
        return None
    first = group.maker(transpose.invars[0], "reshape")
    if first is None or any(eqn.params["dimensions"] is not None for eqn in (first, last)):
        return None
    (x,), (y,) = first.invars, last.outvars
    split = first.outvars[0].aval.shape
    if len(x.aval.shape) != 4 or len(y.aval.shape) != 4:
        return None
    batch, rows, columns, depth = x.aval.shape
    if not all(isinstance(dim, int) for dim in (rows, columns, depth)):
        return None
    for primitive, op, block in (
        (_DEPTH_TO_SPACE, "DepthToSpace", split[3]),
        (_SPACE_TO_DEPTH, "SpaceToDepth", split[2]),
    ):
        if not isinstance(block, int) or block < 2 or not _has_op(target, op, x):
            continue
        if primitive is _DEPTH_TO_SPACE:
            expected = batch, rows, columns, block, block, depth // block**2
            result = batch, rows * block, columns * block, depth // block**2
        else:
            expected = batch, rows // block, block, columns // block, block, depth
            result = batch, rows // block, columns // block, depth * block**2
        if split == expected and y.aval.shape == result and 0 not in result:
            return [last.replace(primitive=primitive, invars=[x], params={"block": block})]
    return None


def _squeezed_slice(squeeze: jex_core.JaxprEqn, group: Group) -> list[jex_core.JaxprEqn] | None:
    """A known index: a slice of size one without its axis."""
    cut = group.maker(squeeze.invars[0], "slice")
    if cut is None or not _is_plain(cut.params["strides"]):
        return None
    shape, dimensions = cut.invars[0].aval.shape, squeeze.params["dimensions"]
    is_known = all(
        _is_whole(cut, i) or all(isinstance(bound, int) for bound in _bounds(cut, i))
        for i in range(len(shape))
    )
    if not is_known or not dimensions or 0 in squeeze.outvars[0].aval.shape:
        return None
    params = {
        "start_indices": cut.params["start_indices"],
        "limit_indices": cut.params["limit_indices"],
        "dimensions": dimensions,
    }
    return [squeeze.replace(primitive=SLICE_AND_SQUEEZE, invars=cut.invars, params=params)]


def _repeated(reshape: jex_core.JaxprEqn, group: Group) -> list[jex_core.JaxprEqn] | None:
    """Elements that are repeated along axes of size one, as a broadcast along these."""
    expand = group.maker(reshape.invars[0], "broadcast_in_dim")
    if expand is None or len(expand.invars) != 1 or reshape.params["dimensions"] is not None:
        return None
    (x,), (between,), (y,) = expand.invars, expand.outvars, reshape.outvars
    if len(x.aval.shape) != len(y.aval.shape):
        return None
    # Axes of size one aside, the reshape changes nothing: so each axis of `between` is one of `y`.
    long, final = _long_axes(between.aval.shape), _long_axes(y.aval.shape)
    if [between.aval.shape[axis] for axis in long] != [y.aval.shape[axis] for axis in final]:
        return None
    place = dict(zip(long, final, strict=True))
    to = expand.params["broadcast_dimensions"]
    if any(place[to[axis]] != axis for axis in _long_axes(x.aval.shape)):
        return None
    shape = y.aval.shape
    params = {**expand.params, "shape": shape, "broadcast_dimensions": tuple(range(len(shape)))}
    return [expand.replace(outvars=[y], params=params)]


def _long_axes(shape: Any) -> list[int]:
    return [axis for axis, dim in enumerate(shape) if dim != 1]


def fuse_moves(jaxpr: Jaxpr, target: Target) -> Jaxpr:
    """Replaces groups of equations that move pixels to channels, repeat elements, or take one."""

    def reshaped(reshape: jex_core.JaxprEqn, group: Group) -> list[jex_core.JaxprEqn] | None:
        return _repeated(reshape, group) or _moved_pixels(reshape, group, target)

    return fuse(jaxpr, (), {"reshape": reshaped, "squeeze": _squeezed_slice})
