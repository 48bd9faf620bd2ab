"""Functions of JAX that are one op or few, found as the calls that JAX traces them to.

JAX traces `jax.image.resize` to matrices of weights and products with these, and `searchsorted` to
a loop, each as a call that has its name. Such a call is the function if JAX traces the function,
for operands of the same shapes, to the very equations that are called. Nothing
depends on how JAX writes the function; programs that compute the same in another way are not found.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np

from lowering import registry
from lowering.passes.everywhere import Everywhere
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.trace import trace_ours
from lowering.targets import Target

_RESIZE = registry.new_primitive("resize_images")


@_RESIZE.def_abstract_eval
def _resized(x, *, size, method):
    batch, _, _, depth = x.shape
    return jax.core.ShapedArray((batch, *size, depth), x.dtype)


_SEARCH = registry.new_primitive("search")


@_SEARCH.def_abstract_eval
def _places(x, y, *, side, dtype):
    return jax.core.ShapedArray(y.shape, dtype)


# The ops that resize images.
RESIZING: Mapping[str, str] = {
    "nearest": "ResizeNearestNeighbor",
    "linear": "ResizeBilinear",
    "cubic": "ResizeBicubic",
}

# The op for cubic resizing has a table of weights for so many positions between two pixels.
_CUBIC_POSITIONS = 1024

# Among at most so many sorted numbers, comparing with all is no slower than a binary search.
_MOST_COMPARED = 64


class _Candidate(NamedTuple):
    """A function of JAX that a call may be, and its replacement."""

    function: Callable[..., Any]
    replacement: Callable[..., Any]


# Takes the operands and the result of a call, and the target; yields what it may be.
_Candidates = Callable[[Sequence[Any], Any, Target], Iterator[_Candidate]]


def fuse_functions(jaxpr: jex_core.ClosedJaxpr, target: Target) -> Any:
    """The closed jaxpr in which calls of such functions call their replacements."""
    replacements: dict[int, Any] = {}

    def change(eqn: jex_core.JaxprEqn) -> jex_core.JaxprEqn:
        find, called = _CANDIDATES.get(eqn.params.get("name", "")), eqn.params.get("jaxpr")
        if find is None or not isinstance(called, jex_core.ClosedJaxpr) or called.consts:
            return eqn
        if id(called) not in replacements:
            replacements[id(called)] = _replacement(called, find, target)
        new = replacements[id(called)]
        return eqn if new is None else eqn.replace(params={**eqn.params, "jaxpr": new})

    return Everywhere(change).jaxpr(jaxpr)


def _replacement(called: Any, find: _Candidates, target: Target) -> Jaxpr | None:
    if len(called.out_avals) != 1 or not all(hasattr(x, "dtype") for x in called.in_avals):
        return None
    text = str(called)
    for function, replacement in find(called.in_avals, called.out_avals[0], target):
        if _body(function, called.in_avals) == text:
            return trace_ours(replacement, _structs(called.in_avals))[0]
    return None


def _body(function: Callable[..., Any], operands: Sequence[Any]) -> str | None:
    """The jaxpr that JAX calls for a function; None if tracing it gives more than this call."""
    traced = jax.jit(function).trace(*_structs(operands)).jaxpr
    return str(traced.eqns[0].params.get("jaxpr")) if len(traced.eqns) == 1 else None


def _structs(operands: Sequence[Any]) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(x.shape, x.dtype, weak_type=x.weak_type) for x in operands]


def _resizing(operands: Sequence[Any], result: Any, target: Target) -> Iterator[_Candidate]:
    """Resizing of float32 images, along one axis or two neighbouring ones of known sizes.

    Pixels have half-integer centers in JAX and in the ops. The ops do not antialias, as JAX does by
    default where it downsamples. The nearest pixel is the same for integer factors, where there is
    no rounding, and cubic weights for powers of two, whose positions are in the op's table.
    """
    if len(operands) != 1 or len(operands[0].shape) != len(result.shape):
        return
    (x,), shape = operands, result.shape
    axes = [i for i, dim in enumerate(x.shape) if shape[i] != dim]
    sizes = [(x.shape[i], shape[i]) for i in axes]
    if x.dtype != np.float32 or not axes or axes[-1] - axes[0] > 1:
        return
    if not all(isinstance(n, int) and n > 0 for pair in sizes for n in pair):
        return
    is_larger = all(before < after for before, after in sizes)
    if is_larger and all(after % before == 0 for before, after in sizes):
        yield from _resizing_by("nearest", axes, shape, target, [True])
        if all(_CUBIC_POSITIONS % (2 * after // before) == 0 for before, after in sizes):
            yield from _resizing_by("cubic", axes, shape, target, [True, False])
    yield from _resizing_by("linear", axes, shape, target, [True, False] if is_larger else [False])


def _resizing_by(method, axes, shape, target, antialiasing):
    if target.is_consumer and "float32" not in target.ops.get(RESIZING[method], ()):
        return
    replacement = functools.partial(_resize, axes=axes, shape=shape, method=method)
    for antialias in antialiasing:
        function = functools.partial(
            jax.image.resize, shape=shape, method=method, antialias=antialias
        )
        yield _Candidate(function, replacement)


def _resize(x: Any, axes: Sequence[int], shape: Sequence[Any], method: str) -> Any:
    if x.ndim == 4 and set(axes) <= {1, 2}:
        return _RESIZE.bind(x, size=tuple(shape[1:3]), method=method)
    first, last = axes[0], axes[-1]
    batch, depth = math.prod(shape[:first]), math.prod(shape[last + 1 :])
    # A single axis becomes the rows of images with one column.
    size = (*(shape[i] for i in axes), 1)[:2]
    images = jnp.reshape(x, (batch, *(*(x.shape[i] for i in axes), 1)[:2], depth))
    return jnp.reshape(_RESIZE.bind(images, size=size, method=method), shape)


def _searching(operands: Sequence[Any], result: Any, target: Target) -> Iterator[_Candidate]:
    """A search among few numbers; its rule compares with all of them if they are known."""
    if len(operands) != 2 or any(x.dtype not in (np.float32, np.int32) for x in operands):
        return
    # Of a mapped function, each element of a batch may be searched in other numbers.
    count = operands[0].shape[0] if len(operands[0].shape) == 1 else None
    if not isinstance(count, int) or not 0 < count <= _MOST_COMPARED:
        return
    for side in ("left", "right"):
        yield _Candidate(
            functools.partial(jnp.searchsorted, side=side),
            functools.partial(_SEARCH.bind, side=side, dtype=result.dtype),
        )


_CANDIDATES: Mapping[str, _Candidates] = {"_resize": _resizing, "searchsorted": _searching}
