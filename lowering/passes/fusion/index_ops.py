"""Groups of equations that are one op on indices: rows that are taken, and one-hot vectors.

JAX counts negative indices from the end, by a comparison, a sum and a choice, and then moves or
marks those that are out of bounds. One primitive does all of it in fewer ops.
"""

import math
from typing import Any

import jax
import jax.extend.core as jex_core
import numpy as np
from jax import lax

from lowering import registry
from lowering.passes.fusion.moves import SLICE_AND_SQUEEZE
from lowering.passes.fusion.patterns import Uses
from lowering.passes.jaxprs import Jaxpr
from lowering.passes.rewriting import Rewriter, as_reshape, replace_equations, without_unused
from lowering.passes.simplify.ranges import Ranges

_TAKE = registry.new_primitive("take")
_ONE_HOT = registry.new_primitive("one_hot")


@_TAKE.def_abstract_eval
def _taken(x, index, *, axis, batch_dims, wraps, clips, fill_value):
    shape = *x.shape[:axis], *index.shape[batch_dims:], *x.shape[axis + 1 :]
    return jax.core.ShapedArray(shape, x.dtype)


_ONE_HOT.def_abstract_eval(
    lambda index, *, depth, dtype: jax.core.ShapedArray((*index.shape, depth), dtype)
)

_INDICES = np.int32, np.int64
_NUMBERS = np.float32, np.float64, np.int32, np.int64
_ELEMENTS = *_NUMBERS, np.bool_


def with_index_ops(jaxpr: Jaxpr) -> Jaxpr:
    """Replaces gathers and slices of rows, comparisons with all indices, and products of both."""
    found = _Indices(jaxpr)
    new = replace_equations(
        jaxpr,
        {
            "gather": found.take,
            "squeeze": found.take_one,
            "convert_element_type": lambda _, eqn: found.one_hot(eqn),
            "dot_general": found.looked_up,
        },
    )
    return jaxpr if new is jaxpr else without_unused(new)


class _Indices:
    """What the equations of a jaxpr do with indices."""

    def __init__(self, jaxpr: Jaxpr):
        self._uses = Uses(jaxpr)
        self._ranges = Ranges()
        for eqn in jaxpr.eqns:
            self._ranges.add(eqn)

    def take(self, new: Rewriter, gather: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        """A gather of rows along one axis, in whose place are the axes of the indices.

        The first axes may be those of a batch, of which each element has indices of its own.
        """
        x, vectors = gather.invars
        numbers, shape = gather.params["dimension_numbers"], x.aval.shape
        index, batch_dims = vectors, len(numbers.operand_batching_dims)
        has_batch = len(numbers.start_index_map) == 1
        if not has_batch:
            index, batch_dims = self._with_batch(gather)
        # JAX wraps vectors of 64 bits around in 32; those that a program makes of its indices fit.
        is_wrapped = vectors.aval.dtype == np.int64 and self._uses.maker(vectors) is None
        if index is None or is_wrapped:
            return None
        batch, axis = tuple(range(batch_dims)), numbers.start_index_map[-1]
        rank = len(vectors.aval.shape) - 1 - batch_dims
        of_rows = lax.GatherDimensionNumbers(
            offset_dims=(*range(batch_dims, axis), *range(axis + rank, rank + len(shape) - 1)),
            collapsed_slice_dims=(axis,) if has_batch else (*batch, axis),
            start_index_map=numbers.start_index_map,
            operand_batching_dims=batch if has_batch else (),
            start_indices_batching_dims=batch if has_batch else (),
        )
        sizes = (*[1] * batch_dims, *shape[batch_dims:axis], 1, *shape[axis + 1 :])
        if numbers != of_rows or axis < batch_dims or gather.params["slice_sizes"] != sizes:
            return None
        fills = gather.params["mode"] == lax.GatherScatterMode.FILL_OR_DROP
        fill_value = gather.params["fill_value"] if fills else None
        shape = vectors.aval.shape[:-1]
        return self._take(new, gather, x, index, shape, axis, fills, fill_value, batch_dims)

    def _with_batch(self, gather: jex_core.JaxprEqn) -> tuple[Any, int]:
        """The last indices of vectors whose others count the elements of a batch, and these.

        So a program writes `x[arange(n), index]`.
        """
        x, vectors = gather.invars
        *shape, _ = vectors.aval.shape
        joined = self._uses.maker(vectors, "concatenate")
        axes = gather.params["dimension_numbers"].start_index_map
        if joined is None or joined.params["dimension"] != len(shape):
            return None, 0
        *counts, index = joined.invars
        for axis, atom in enumerate(counts):
            if self._counted(atom) != axis or axes[axis] != axis:
                return None, 0
            if axis >= len(shape) or x.aval.shape[axis] != shape[axis]:
                return None, 0
        return (index, len(counts)) if len(axes) == len(counts) + 1 else (None, 0)

    def _counted(self, atom: Any) -> int | None:
        """The axis along which an array has the positions as its elements; None if it has not."""
        iota, expand = self._uses.maker(atom, "iota"), self._uses.maker(atom, "broadcast_in_dim")
        if iota is not None:
            return iota.params["dimension"]
        if expand is None or len(expand.invars) != 1:
            return None
        axis = self._counted(expand.invars[0])
        if axis is None:
            return None
        place = expand.params["broadcast_dimensions"][axis]
        is_kept = expand.params["shape"][place] == expand.invars[0].aval.shape[axis]
        return int(place) if is_kept else None

    def take_one(self, new: Rewriter, squeeze: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        """A dynamic slice of one row, without its axis; JAX moves it inside."""
        dynamic = self._uses.maker(squeeze.invars[0], "dynamic_slice")
        if dynamic is None or len(squeeze.params["dimensions"]) != 1:
            return None
        (axis,) = squeeze.params["dimensions"]
        x, *starts = dynamic.invars
        shape = x.aval.shape
        if dynamic.params["slice_sizes"] != (*shape[:axis], 1, *shape[axis + 1 :]):
            return None
        return self._take(new, squeeze, x, starts[axis], (), axis, fills=False, fill_value=None)

    def _take(self, new, eqn, x, index, shape, axis, fills, fill_value, batch_dims=0):
        size = x.aval.shape[axis]
        index = self._before_reshapes(index)
        if x.aval.dtype not in _ELEMENTS or index.aval.dtype not in _INDICES:
            return None
        if not isinstance(size, int) or size == 0:
            return None
        if isinstance(index, jex_core.Literal):
            return self._slice(eqn, x, int(index.val), axis)
        if fills and fill_value is None and x.aval.dtype not in (np.float32, np.float64):
            return None
        unwrapped = self._unwrapped(index, size)
        wraps = unwrapped is not None
        index = unwrapped if wraps else index
        found = self._ranges.of(index)
        is_inside = found is not None and (-size if wraps else 0) <= found[0] <= found[1] < size
        params = {
            "axis": axis,
            "batch_dims": batch_dims,
            "wraps": wraps,
            "clips": not is_inside,
            "fill_value": (np.nan if fill_value is None else fill_value)
            if fills and not is_inside
            else None,
        }
        if index.aval.shape != shape:
            shaped = jex_core.Var(index.aval.update(shape=shape))
            new.add(as_reshape(eqn, index, shaped))
            index = shaped
        return eqn.replace(primitive=_TAKE, invars=[x, index], params=params)

    def _before_reshapes(self, atom: Any) -> Any:
        """What an atom is a reshape of, if it is one."""
        maker = self._uses.maker(atom)
        if maker is None or maker.primitive.name not in ("reshape", "broadcast_in_dim"):
            return atom
        before = maker.invars[0]
        is_same = math.prod(before.aval.shape) == math.prod(atom.aval.shape)
        if not is_same or maker.params.get("dimensions") is not None:
            return atom
        return self._before_reshapes(before)

    def _slice(self, eqn, x, place, axis):
        """The row at a known index, if that is in bounds."""
        shape = x.aval.shape
        if not 0 <= place < shape[axis] or eqn.outvars[0].aval.dtype != x.aval.dtype:
            return None
        params = {
            "start_indices": tuple(place if i == axis else 0 for i in range(len(shape))),
            "limit_indices": tuple(place + 1 if i == axis else dim for i, dim in enumerate(shape)),
            "dimensions": (axis,),
        }
        return eqn.replace(primitive=SLICE_AND_SQUEEZE, invars=[x], params=params)

    def _unwrapped(self, index: Any, size: int) -> Any:
        """The indices from which negative ones have been made to count from the end of an axis."""
        select = self._uses.maker(index, "select_n")
        if select is None or len(select.invars) != 3:
            return None
        which, plain, wrapped = select.invars
        less, add = self._uses.maker(which, "lt"), self._uses.maker(wrapped, "add")
        if less is None or add is None or less.invars[0] is not plain:
            return None
        if add.invars[0] is not plain or not _is_number(less.invars[1], 0):
            return None
        return plain if _is_number(add.invars[1], size) else None

    def one_hot(self, convert: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        """One-hot vectors: numbers of whether indices equal the positions along the last axis."""
        equal = self._uses.maker(convert.invars[0], "eq")
        (result,) = convert.outvars
        shape = result.aval.shape
        if equal is None or result.aval.dtype not in _NUMBERS or not shape:
            return None
        for x, y in (equal.invars, equal.invars[::-1]):
            expand, iota = self._uses.maker(x, "broadcast_in_dim"), self._positions(y)
            if expand is None or iota is None or not isinstance(shape[-1], int):
                continue
            (index, *_), last = expand.invars, len(shape) - 1
            if (
                index.aval.dtype in _INDICES
                and index.aval.shape == shape[:-1]
                and expand.params["broadcast_dimensions"] == tuple(range(last))
                and _counts_last(iota, shape)
            ):
                params = {"depth": shape[-1], "dtype": result.aval.dtype}
                return convert.replace(primitive=_ONE_HOT, invars=[index], params=params)
        return None

    def looked_up(self, new: Rewriter, dot: jex_core.JaxprEqn) -> jex_core.JaxprEqn | None:
        """Rows of a table, by a product with one-hot vectors; without a one, a row has zeros.

        The converter to TF Lite finds these products, too, but not what is out of bounds: see
        `tflite.quirks.lookups_out_of_bounds`.
        """
        vectors, table = dot.invars
        made, last = self._vectors(vectors), len(vectors.aval.shape) - 1
        if made is None or dot.params["dimension_numbers"] != (((last,), (0,)), ((), ())):
            return None
        (result,), (index,) = dot.outvars, made.invars
        if result.aval.dtype != table.aval.dtype or dot.params.get("permutation"):
            return None
        places = index.aval.shape
        shape = *places, *table.aval.shape[1:]
        if shape == result.aval.shape:
            return self._take(new, dot, table, index, places, axis=0, fills=True, fill_value=0)
        rows = jex_core.Var(result.aval.update(shape=shape))
        take = self._take(new, dot, table, index, places, axis=0, fills=True, fill_value=0)
        if take is None:
            return None
        new.add(take.replace(outvars=[rows]))
        return as_reshape(dot, rows, result)

    def _vectors(self, atom: Any) -> jex_core.JaxprEqn | None:
        """The `one_hot` that makes vectors, which may then be converted and reshaped by rows."""
        reshape = self._uses.maker(atom, "reshape")
        if reshape is not None and reshape.params["dimensions"] is None:
            before = reshape.invars[0].aval.shape
            is_last_kept = before[-1:] == atom.aval.shape[-1:] != ()
            return self._vectors(reshape.invars[0]) if is_last_kept else None
        convert = self._uses.maker(atom, "convert_element_type")
        if convert is None:
            return None
        if convert.invars[0].aval.dtype == np.bool_:
            return self.one_hot(convert)
        return self._vectors(convert.invars[0])

    def _positions(self, atom: Any) -> jex_core.JaxprEqn | None:
        """The `iota` that an atom is, or is a broadcast of along leading axes."""
        expand = self._uses.maker(atom, "broadcast_in_dim")
        if expand is None:
            return self._uses.maker(atom, "iota")
        dims, rank = expand.params["broadcast_dimensions"], len(expand.outvars[0].aval.shape)
        if dims != tuple(range(rank - len(dims), rank)):
            return None
        return self._uses.maker(expand.invars[0], "iota")


def _counts_last(iota: jex_core.JaxprEqn, shape: tuple[Any, ...]) -> bool:
    """Whether an `iota` has the positions along the last axis of a shape that it broadcasts to."""
    *others, size = iota.params["shape"]
    is_row = all(isinstance(dim, int) and dim == 1 for dim in others)
    is_along_last = iota.params["dimension"] == len(others) and size == shape[-1]
    return is_along_last and (is_row or (*others, size) == shape)


def _is_number(atom: Any, number: int) -> bool:
    return isinstance(atom, jex_core.Literal) and np.ndim(atom.val) == 0 and atom.val == number
