"""Pads, slices, gathers and scatters with random shapes and parameters give what JAX gives."""

import hypothesis
import jax
import numpy as np
import tensorflow as tf
from hypothesis import strategies as st
from jax import lax

from lowering import convert

settings = hypothesis.settings(max_examples=15, deadline=None, derandomize=True)
TARGETS = ("tf", "xla", "portable")

MODES = st.sampled_from(
    [
        lax.GatherScatterMode.CLIP,
        lax.GatherScatterMode.FILL_OR_DROP,
        lax.GatherScatterMode.PROMISE_IN_BOUNDS,
    ]
)
SCATTERS = st.sampled_from(
    [
        lax.scatter,
        lax.scatter_add,
        lax.scatter_sub,
        lax.scatter_mul,
        lax.scatter_min,
        lax.scatter_max,
    ]
)
INDEX_DTYPES = st.sampled_from([np.int8, np.int32, np.uint8, np.uint32])


def _check(fun, args, known=()):
    """Compares a function with its conversions; some arguments may be known to it."""
    unknown = [arg for i, arg in enumerate(args) if i not in known]

    def closed(*unknown):
        rest = iter(unknown)
        return fun(*(arg if i in known else next(rest) for i, arg in enumerate(args)))

    expected = np.asarray(jax.jit(closed)(*unknown))
    for target in TARGETS:
        converted = convert(closed, target=target, with_gradient=False)
        actual = tf.function(converted, autograph=False)(*map(tf.constant, unknown))
        np.testing.assert_array_equal(actual.numpy(), expected, err_msg=target)


def _array(shape):
    # Small integers: sums and products of them are the same in any order.
    return np.random.default_rng(0).integers(-4, 5, shape).astype(np.float32)


@st.composite
def pads(draw):
    shape = draw(st.lists(st.integers(0, 4), max_size=3))
    config = []
    for size in shape:
        interior = draw(st.integers(0, 2))
        dilated = size + max(size - 1, 0) * interior
        low = draw(st.integers(-dilated - 2, 3))
        high = draw(st.integers(max(-dilated - low, -dilated - 2), 5))
        config.append((low, high, interior))
    return _array(shape), tuple(config)


@settings
@hypothesis.given(pads())
def test_pad(case):
    x, config = case
    _check(lambda x, y: lax.pad(x, y, config), (x, np.float32(7)))


@st.composite
def dynamic_slices(draw):
    shape = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    sizes = tuple(draw(st.integers(0, size)) for size in shape)
    dtype = draw(INDEX_DTYPES)
    lowest = 0 if np.dtype(dtype).kind == "u" else -3
    starts = [np.array(draw(st.integers(lowest, 7)), dtype) for _ in shape]
    known = draw(st.sets(st.integers(1, len(shape))))
    return _array(shape), starts, sizes, known


@settings
@hypothesis.given(dynamic_slices())
def test_dynamic_slice(case):
    x, starts, sizes, known = case

    def fun(x, *starts):
        return lax.dynamic_slice_p.bind(x, *starts, slice_sizes=sizes)

    _check(fun, (x, *starts), known)


@settings
@hypothesis.given(dynamic_slices())
def test_dynamic_update_slice(case):
    x, starts, sizes, known = case
    known = {i + 1 for i in known}
    _check(lax.dynamic_update_slice_p.bind, (x, _array(sizes), *starts), known)


@st.composite
def places(draw):
    """The parameters that gathers and scatters have in common.

    Returns:
      The shape of the operand; for its axes the sizes of windows, which of them are dropped from
      windows, batching and indexed; the batching dimensions of the indices, and the indices.
    """
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    axes = draw(st.permutations(range(len(shape))))
    count = draw(st.integers(0, min(2, len(shape) - 1)))
    batching, rest = sorted(axes[:count]), axes[count:]
    indexed = rest[: draw(st.integers(1, len(rest)))]
    sizes = [
        1 if i in batching else draw(st.sampled_from([1, size, (size + 1) // 2]))
        for i, size in enumerate(shape)
    ]
    dropped = sorted(i for i in rest if sizes[i] == 1 and draw(st.booleans()))
    batch = draw(st.lists(st.integers(1, 3), min_size=count, max_size=count + 2))
    index_batching = draw(st.permutations(range(len(batch))))[:count]
    for axis, dim in zip(batching, index_batching, strict=True):
        batch[dim] = shape[axis]
    dtype = draw(INDEX_DTYPES)
    lowest = 0 if np.dtype(dtype).kind == "u" else -2
    length = int(np.prod(batch)) * len(indexed)
    values = draw(st.lists(st.integers(lowest, 5), min_size=length, max_size=length))
    indices = np.array(values, dtype).reshape(*batch, len(indexed))
    return shape, sizes, dropped, batching, indexed, index_batching, indices


def _result_dims(draw, batch_rank, window_rank):
    """Which dimensions of a gather's result, or of updates, are those of windows."""
    order = draw(st.permutations(range(batch_rank + window_rank)))
    return tuple(sorted(order[:window_rank]))


@st.composite
def gathers(draw):
    shape, sizes, dropped, batching, indexed, index_batching, indices = draw(places())
    rank = len(shape) - len(dropped) - len(batching)
    numbers = lax.GatherDimensionNumbers(
        _result_dims(draw, indices.ndim - 1, rank),
        tuple(dropped),
        tuple(indexed),
        tuple(batching),
        tuple(index_batching),
    )
    return _array(shape), indices, numbers, tuple(sizes), draw(MODES), draw(st.booleans())


@settings
@hypothesis.given(gathers())
def test_gather(case):
    x, indices, numbers, sizes, mode, is_known = case

    def fun(x, indices):
        return lax.gather(x, indices, numbers, sizes, mode=mode)

    _check(fun, (x, indices), {1} if is_known else ())


@st.composite
def scatters(draw):
    shape, sizes, dropped, batching, indexed, index_batching, indices = draw(places())
    windows = [s for i, s in enumerate(sizes) if i not in dropped and i not in batching]
    window_dims = _result_dims(draw, indices.ndim - 1, len(windows))
    rest, window = iter(indices.shape[:-1]), iter(windows)
    updates = [
        next(window) if i in window_dims else next(rest)
        for i in range(indices.ndim - 1 + len(windows))
    ]
    numbers = lax.ScatterDimensionNumbers(
        window_dims, tuple(dropped), tuple(indexed), tuple(batching), tuple(index_batching)
    )
    x, updates = _array(shape), _array(updates)
    return draw(SCATTERS), x, indices, updates, numbers, draw(MODES), draw(st.booleans())


@settings
@hypothesis.given(scatters())
def test_scatter(case):
    scatter, x, indices, updates, numbers, mode, is_known = case

    def fun(x, indices, updates):
        return scatter(x, indices, updates, numbers, mode=mode)

    _check(fun, (x, indices, updates), {1} if is_known else ())
