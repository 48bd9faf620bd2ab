"""Contractions, convolutions and windows with random shapes give what JAX gives."""

import math
from unittest import mock

import jax
import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jax import lax

import lowering
from lowering.ops import tuning

_SETTINGS = settings(
    max_examples=15,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
_TARGETS = ("tf", "xla", "portable")
# Whole numbers, of which sums are exact in any order.
_DTYPES = st.sampled_from([np.float32, np.int32, np.int8, np.complex64])


def _whole(shape, dtype, seed):
    x = np.random.default_rng(seed).integers(-3, 4, shape)
    return (x * (1 + 1j) if np.dtype(dtype).kind == "c" else x).astype(dtype)


def _check(fun, *args, targets=_TARGETS):
    """Compares with JAX in graph mode; zeros of both signs are equal."""
    try:
        expected = jax.jit(fun)(*args)
    except (TypeError, ValueError):
        assume(False)
    for target in targets:
        converted = lowering.convert(fun, target=target, with_gradient=False)
        actual = tf.function(converted, autograph=False)(*map(tf.constant, args))
        np.testing.assert_array_equal(actual.numpy(), np.asarray(expected), target, strict=True)


@st.composite
def _dots(draw):
    """Operand shapes and dimension numbers."""
    sizes = st.integers(0, 3)
    batch, contract, lhs_free, rhs_free = (
        draw(st.lists(sizes, max_size=count)) for count in (2, 2, 2, 2)
    )

    def operand(free):
        named = [("batch", i, n) for i, n in enumerate(batch)]
        named += [("contract", i, n) for i, n in enumerate(contract)]
        named += [("free", i, n) for i, n in enumerate(free)]
        order = draw(st.permutations(named))
        places = {(kind, i): place for place, (kind, i, _) in enumerate(order)}
        return (
            tuple(n for _, _, n in order),
            tuple(places["contract", i] for i in range(len(contract))),
            tuple(places["batch", i] for i in range(len(batch))),
        )

    lhs, lhs_contract, lhs_batch = operand(lhs_free)
    rhs, rhs_contract, rhs_batch = operand(rhs_free)
    return lhs, rhs, ((lhs_contract, rhs_contract), (lhs_batch, rhs_batch))


@_SETTINGS
@given(dot=_dots(), dtype=_DTYPES, seed=st.integers(0, 99))
def test_dot_general(dot, dtype, seed):
    lhs, rhs, numbers = dot
    args = _whole(lhs, dtype, seed), _whole(rhs, dtype, seed + 1)
    _check(lambda x, y: lax.dot_general(x, y, numbers), *args)


@_SETTINGS
@given(dot=_dots(), seed=st.integers(0, 99))
def test_batches_as_if_large(dot, seed):
    lhs, rhs, numbers = dot
    args = _whole(lhs, np.float32, seed), _whole(rhs, np.float32, seed + 1)
    with mock.patch.object(tuning, "multiplies_by_eigen", return_value=False):
        _check(lambda x, y: lax.dot_general(x, y, numbers), *args, targets=["tf"])


def _axes(draw, rank, low=-1):
    """Strides, paddings, base dilations and window dilations."""

    def each(values):
        return tuple(draw(st.lists(values, min_size=rank, max_size=rank)))

    amounts = st.tuples(st.integers(low, 2), st.integers(low, 2))
    small = st.integers(1, 2)
    return each(st.integers(1, 3)), each(amounts), each(small), each(small)


@st.composite
def _convolutions(draw):
    """Operand shapes and parameters."""
    rank = draw(st.integers(0, 3))
    # JAX computes something else for some negative amounts of padding.
    strides, padding, lhs_dilation, rhs_dilation = _axes(draw, rank, low=0)
    groups = draw(st.sampled_from(["none", "none", "features", "batch"]))
    count = draw(st.integers(2, 3)) if groups != "none" else 1
    features, outputs, batch = (draw(st.integers(1, 2)) for _ in range(3))
    sizes = draw(st.lists(st.integers(1, 5), min_size=rank, max_size=rank))
    window = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    lhs = [batch * (count if groups == "batch" else 1), features, *sizes]
    rhs = [outputs * count, features, *window]
    if groups == "features":
        lhs[1] *= count
    specs = [tuple(draw(st.permutations(range(rank + 2)))) for _ in range(3)]
    shapes = [tuple(_placed(dims, spec)) for dims, spec in zip((lhs, rhs), specs, strict=False)]
    params = dict(
        window_strides=strides,
        padding=padding,
        lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
        dimension_numbers=lax.ConvDimensionNumbers(*specs),
        feature_group_count=count if groups == "features" else 1,
        batch_group_count=count if groups == "batch" else 1,
    )
    return *shapes, params


def _placed(dims, spec):
    placed = [0] * len(dims)
    for dim, place in zip(dims, spec, strict=True):
        placed[place] = dim
    return placed


@_SETTINGS
@given(convolution=_convolutions(), dtype=_DTYPES, seed=st.integers(0, 99))
def test_conv_general_dilated(convolution, dtype, seed):
    lhs, rhs, params = convolution
    args = _whole(lhs, dtype, seed), _whole(rhs, dtype, seed + 1)
    _check(lambda x, y: lax.conv_general_dilated(x, y, **params), *args)


@st.composite
def _windows(draw):
    """A shape and the parameters of `lax.reduce_window`."""
    rank = draw(st.integers(0, 4))
    strides, padding, base_dilation, window_dilation = _axes(draw, rank)
    shape = tuple(draw(st.lists(st.integers(0, 5), min_size=rank, max_size=rank)))
    size = tuple(draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    # XLA aborts the process where windows of one element each only remove some.
    assume({*size, *strides} != {1} or all(n >= 0 for pair in padding for n in pair))
    return shape, (size, strides, padding, base_dilation, window_dilation)


def _bitwise_or_or_max(x, y):
    return lax.bitwise_or(x, y) if x.dtype.kind == "i" else lax.max(x, y)


@_SETTINGS
@given(
    window=_windows(),
    reducer=st.sampled_from([lax.add, lax.max, lax.min, _bitwise_or_or_max]),
    dtype=st.sampled_from([np.float32, np.int32, np.uint8]),
    seed=st.integers(0, 99),
)
def test_reduce_window(window, reducer, dtype, seed):
    shape, params = window
    neutral = {lax.add: 0, lax.max: -math.inf, lax.min: math.inf}.get(reducer, 1)
    if np.dtype(dtype).kind != "f" and abs(neutral) == math.inf:
        info = np.iinfo(dtype)
        neutral = info.max if neutral > 0 else info.min
    init = np.array(neutral, dtype)
    x = _whole(shape, dtype, seed)
    _check_close(lambda x: lax.reduce_window(x, init, reducer, *params), x)


def _check_close(fun, x):
    """Compares with JAX in graph mode, up to the rounding of sums."""
    expected = np.asarray(jax.jit(fun)(x))
    for target in _TARGETS:
        converted = lowering.convert(fun, target=target, with_gradient=False)
        actual = tf.function(converted, autograph=False)(tf.constant(x))
        assert actual.shape == expected.shape
        np.testing.assert_allclose(actual.numpy(), expected, 1e-6, 1e-5, err_msg=target)
