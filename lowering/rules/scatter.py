"""Scatter: updates of windows of an array at computed positions.

A scatter of a single window reads and writes a block. Where XLA compiles, XLA's own op may scatter.
All others become updates of whole rows of an array; see `lowering.tensors.rows`.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax
from tensorflow.compiler.tf2xla.ops import gen_xla_ops
from tensorflow.compiler.xla import xla_data_pb2

from lowering import avals
from lowering.arrays import complex_math, computations, uint32, uint32_parts
from lowering.arrays.integers import from_signed_order, in_signed_order
from lowering.ops import dtypes, kernels, move
from lowering.ops.dtypes import COMPLEX
from lowering.ops.values import tensor
from lowering.passes.legalize.bitcast_uint32 import on_bits
from lowering.registry import Trait, decomposition, legalization, rule
from lowering.targets import TFJS
from lowering.tensors import blocks, indexing, movement, rows, scattering

# The update computation of a primitive, and how rows are updated by it.
_COMPUTATIONS: Mapping[str, tuple[Any, Any]] = {
    "scatter-add": (lax.add, rows.add),
    "scatter-sub": (lax.sub, rows.subtract),
    "scatter-mul": (lax.mul, rows.multiply),
    "scatter-min": (lax.min, rows.minimum),
    "scatter-max": (lax.max, rows.maximum),
}

_NATURAL = {rows.minimum: rows.natural_minimum, rows.maximum: rows.natural_maximum}

# The ops of runtimes that find the products or the extrema of rows and their updates.
_OF_RUNTIMES = {
    rows.multiply: {"UnsortedSegmentProd": rows.multiply},
    rows.minimum: {
        "TensorScatterMin": rows.natural_minimum,
        "UnsortedSegmentMin": rows.minimum_of_segments,
    },
    rows.maximum: {
        "TensorScatterMax": rows.natural_maximum,
        "UnsortedSegmentMax": rows.maximum_of_segments,
    },
}
# Strategies that find rows by index vectors of several elements, too.
_BY_VECTORS = (
    rows.replace,
    rows.add,
    rows.subtract,
    rows.minimum,
    rows.maximum,
    rows.natural_minimum,
    rows.natural_maximum,
)


@rule("scatter", keep_constants=True, traits=Trait.SELECTS)
def scatter(ctx, *operands, update_jaxpr, update_consts, **params):
    """The last update of an element remains, if there is no update computation."""
    if update_jaxpr is None:
        return _scatter(ctx, None, rows.replace, *operands, **params)
    computation = jex_core.ClosedJaxpr(update_jaxpr, update_consts)
    combine = functools.partial(_apply, computation)
    strategy = rows.combine_one_by_one
    if ctx.target.is_natural:
        if computations.monoid(computation) is not None:
            strategy = rows.combine_in_order
        elif not _uses_updates(update_jaxpr):
            strategy = rows.apply_repeatedly
    return _scatter(ctx, combine, strategy, *operands, **params)


def _uses_updates(update_jaxpr):
    """Whether a computation depends on its second operand; that of `scatter_apply` does not."""
    used = [*update_jaxpr.outvars, *(x for eqn in update_jaxpr.eqns for x in eqn.invars)]
    return any(x is update_jaxpr.invars[1] for x in used)


def _apply(computation, old, new):
    """Applies an update computation on scalars to arrays."""
    return computations.elementwise(computation, old.ndim)([old], [new])[0]


@rule(*_COMPUTATIONS, keep_constants=True)
def scatter_add(ctx, *operands, **params):
    combine, strategy = _COMPUTATIONS[ctx.eqn.primitive.name]
    if ctx.out_aval.dtype.kind == "c" and strategy in (rows.multiply, rows.minimum, rows.maximum):
        # Complex numbers have no order, and an infinite one changes when it is multiplied by one.
        strategy = rows.combine_one_by_one
    return _scatter(ctx, combine, strategy, *operands, **params)


@decomposition("scatter", target=TFJS, dtypes=dtypes.UNSIGNED_32)
def scatter_uint32_tfjs(operand, index, updates, *, update_jaxpr, update_consts, **params):
    index = uint32.indices(index)
    if update_jaxpr is not None and operand.dtype == dtypes.UINT32:
        combine = functools.partial(_apply, jex_core.ClosedJaxpr(update_jaxpr, update_consts))
        return _combined(combine, operand, index, updates, **params)
    replace = functools.partial(lax.scatter_p.bind, update_jaxpr=None, update_consts=(), **params)
    if operand.dtype == dtypes.UINT32:
        return uint32_parts.on_parts(replace, operand, index, updates)
    params |= {"update_jaxpr": update_jaxpr, "update_consts": update_consts}
    return lax.scatter_p.bind(operand, index, updates, **params)


for _name in ("scatter", *_COMPUTATIONS):

    @legalization(_name, dtypes=dtypes.UNSIGNED_32)
    def scatter_uint32(operand, index, updates, *, name=_name, **params):
        """The operand or the indices are uint32."""
        primitive = getattr(lax, f"{name.replace('-', '_')}_p")
        index = uint32.indices(index)
        if name not in ("scatter-min", "scatter-max") or operand.dtype != dtypes.UINT32:
            return on_bits(primitive, operand, index, updates, **params)
        params |= {"update_jaxpr": None, "update_consts": ()}
        ordered = in_signed_order(operand), index, in_signed_order(updates)
        return from_signed_order(primitive.bind(*ordered, **params))


@legalization("scatter", dtypes=COMPLEX)
def scatter_of_parts(operand, index, updates, *, update_jaxpr, update_consts, **params):
    if update_jaxpr is None:
        return _on_parts(lax.scatter, operand, index, updates, **params)
    combine = functools.partial(_apply, jex_core.ClosedJaxpr(update_jaxpr, update_consts))
    return _combined(combine, operand, index, updates, **params)


def _on_parts(scatter, operand, index, updates, *, update_jaxpr=None, update_consts=(), **params):
    """A scatter of the real, and of the imaginary parts."""
    parts = zip(complex_math.parts(operand), complex_math.parts(updates), strict=True)
    return lax.complex(*(scatter(x, index, new, **params) for x, new in parts))


legalization("scatter-add", dtypes=COMPLEX)(functools.partial(_on_parts, lax.scatter_add))
legalization("scatter-sub", dtypes=COMPLEX)(functools.partial(_on_parts, lax.scatter_sub))


def _combined(combine, operand, index, updates, *, dimension_numbers, mode, **params):
    """A scatter in JAX, by gathers with the same windows.

    Where no element has several updates, a gather reads all windows, and a scatter replaces them.
    """
    numbers = lax.GatherDimensionNumbers(
        offset_dims=dimension_numbers.update_window_dims,
        collapsed_slice_dims=dimension_numbers.inserted_window_dims,
        start_index_map=dimension_numbers.scatter_dims_to_operand_dims,
        operand_batching_dims=dimension_numbers.operand_batching_dims,
        start_indices_batching_dims=dimension_numbers.scatter_indices_batching_dims,
    )
    absent = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    windows = iter(dimension_numbers.update_window_dims)
    sizes = [1 if i in absent else updates.shape[next(windows)] for i in range(operand.ndim)]
    if params["unique_indices"] or all(isinstance(d, int) and d == 1 for d in index.shape[:-1]):
        new = combine(lax.gather(operand, index, numbers, sizes, mode=mode), updates)
        return lax.scatter(operand, index, new, dimension_numbers, mode=mode, **params)
    return _one_by_one(combine, operand, index, updates, numbers, sizes, mode)


def _one_by_one(combine, operand, index, updates, numbers, sizes, mode):
    """Applies one element of the updates after the other.

    A gather finds the position of each in the flat operand, and a negative one for what is dropped.
    """
    flat, new = lax.reshape(operand, (operand.size,)), lax.reshape(updates, (updates.size,))
    numbered = lax.reshape(lax.iota(np.int32, operand.size), operand.shape)
    found = lax.gather(numbered, index, numbers, sizes, mode=mode, fill_value=-1)
    positions = lax.reshape(found, (updates.size,))

    def step(i, flat):
        position, update = (x.at[i].get(mode="promise_in_bounds") for x in (positions, new))
        place = lax.max(position, np.int32(0))
        old = flat.at[place].get(mode="promise_in_bounds")
        kept = lax.select(position < 0, old, combine(old, update))
        return flat.at[place].set(kept, mode="promise_in_bounds")

    count = jnp.asarray(updates.size, np.int32)
    return lax.reshape(lax.fori_loop(np.int32(0), count, step, flat), operand.shape)


def _by_computation(compute):
    def scatter(operand, index, updates, *, update_jaxpr, update_consts, **params):
        return _combined(compute, operand, index, updates, **params)

    return scatter


for _name in ("scatter-mul", "scatter-min", "scatter-max"):
    legalization(_name, dtypes=COMPLEX)(_by_computation(_COMPUTATIONS[_name][0]))


def _scatter(
    ctx, combine, strategy, operand, index, updates, *, dimension_numbers, mode, unique_indices, **_
):
    """Scatters by a strategy, or in a shorter way where there is one.

    `combine` is the update computation on arrays, or None to replace elements by their updates.
    """
    operand, updates = tensor(operand), tensor(updates)
    plan = scattering.Plan(ctx, dimension_numbers, mode)
    if 0 in plan.shape or 0 in ctx.in_avals[2].shape:
        return operand
    if all(isinstance(dim, int) and dim == 1 for dim in plan.batch):
        return _update_one_window(ctx, plan, operand, index, updates, combine)
    if ctx.takes_xla_ops:
        scatter = functools.partial(_xla_scatter, ctx, plan, dimension_numbers, combine, index)
        if strategy not in (rows.minimum, rows.maximum):
            return scatter(operand, updates)
        return rows.update_as_integers(scatter, operand, updates, strategy is rows.minimum)
    if unique_indices and combine is not None:
        strategy = rows.combine_at_once
    elif ctx.target.is_consumer and not unique_indices:
        # Windows overlap, and may be moved to one place.
        are_rows = all(plan.spans(axis) or plan.sizes[axis] == 1 for axis in plan.indexed)
        is_distinct = are_rows and not plan.clips and _are_distinct(index)
        strategy = _of_consumer(ctx, strategy, is_distinct)
    elif ctx.target.is_natural:
        strategy = _NATURAL.get(strategy, strategy)
    order = scattering.order_of(plan)
    one_index = strategy not in _BY_VECTORS
    updated = scattering.rows_of(ctx, plan, order, one_index, operand, index, updates)
    result = movement.reshape(ctx, strategy(ctx, updated, combine), [plan.shape[i] for i in order])
    return indexing.transpose(ctx, result, np.argsort(order).tolist())


def _of_consumer(ctx, strategy, is_distinct):
    """The strategy for a runtime, which may lack the op of the given one.

    Without an op that replaces elements, only the last of several updates of one may be left, and
    without one that combines them, updates are sorted.
    """
    dtype = dtypes.to_tf(ctx.out_aval.dtype)
    if strategy in _OF_RUNTIMES:
        for op, of_runtime in _OF_RUNTIMES[strategy].items():
            if kernels.supports(op, dtype):
                return of_runtime
        is_known = avals.is_static(ctx.in_avals[2].shape)
        return rows.combine_in_order if is_known else rows.combine_one_by_one
    has_op = kernels.supports("TensorScatterUpdate", dtype)
    if strategy is rows.replace and not has_op and not is_distinct:
        return rows.replace_by_last
    return strategy


def _are_distinct(index):
    """Whether it is known that no two index vectors are equal."""
    if not isinstance(index, np.ndarray):
        return index.shape[:-1].num_elements() == 1
    vectors = index.reshape(math.prod(index.shape[:-1]), index.shape[-1])
    return len(np.unique(vectors, axis=0)) == len(vectors)


def _update_one_window(ctx, plan, operand, index, updates, combine):
    """Reads the window, combines it with the update, and writes it back."""
    shape, sizes = plan.shape, plan.sizes
    place, is_inside = plan.places(ctx, index)
    if isinstance(is_inside, np.ndarray):
        return operand
    place = {axis: part for axis, part in place.items() if not plan.spans(axis)}
    starts = indexing.starts(ctx, place, len(shape))
    updates = movement.reshape(ctx, updates, sizes)
    if combine is not None or is_inside is not True:
        old = blocks.read(ctx, operand, shape, starts, sizes)
        if combine is not None:
            updates = rows.apply(ctx, combine, old, updates, sizes)
        if is_inside is not True:
            updates = move("SelectV2", movement.reshape(ctx, is_inside, ()), updates, old)
    return blocks.write(ctx, operand, shape, updates, sizes, starts)


def _xla_scatter(ctx, plan, numbers, combine, index, operand, updates):
    index = indexing.index_tensor(plan.vectors(ctx, index, plan.indexed))

    def update(old, new):
        return new if combine is None else rows.apply(ctx, combine, old, new, ())

    scalar = tf.TensorSpec((), operand.dtype)
    computation = tf.function(update, autograph=False).get_concrete_function(scalar, scalar)
    dims = numbers._asdict()
    dims["input_batching_dims"] = dims.pop("operand_batching_dims")
    proto = xla_data_pb2.ScatterDimensionNumbers(**dims, index_vector_dim=len(index.shape) - 1)
    return gen_xla_ops.xla_scatter(
        operand,
        index,
        updates,
        update_computation=computation,
        dimension_numbers=proto.SerializeToString(),
        indices_are_sorted=False,
    )
