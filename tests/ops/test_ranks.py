"""Ops on tensors of any rank."""

import numpy as np
import pytest
import tensorflow as tf

from lowering.ops import emit, integers, move, ranks
from lowering.targets import CONSUMERS, TARGETS, lowering_for

MANY = (2, 1, 3, 2, 1, 1, 2, 1, 2, 3)


def _arrays(shapes):
    rng = np.random.default_rng(0)
    which, x, y = shapes
    return rng.random(which) < 0.5, rng.random(x), rng.random(y)


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4,), ()),
        (MANY, MANY, MANY),
        (MANY, (), MANY),
        ((), MANY, ()),
        ((2, 3), (*MANY[:-2], 1, 1), MANY),
        ((2, 1, 1, 2, 1, 1, 1, 1, 2, 3), (3, 1, 1, 1, 2, 1, 1, 1), MANY),
        ((1,) * 12, (1,) * 9, (1,)),
        (MANY, (0, *MANY), (1,)),
    ],
)
@pytest.mark.parametrize("sizes_are_known", [True, False])
def test_selects_as_numpy_does(shapes, sizes_are_known):
    def select(*operands):
        return emit("SelectV2", *operands)

    arrays = _arrays(shapes)
    # Axes of size one are known to be so: unknown ones are not broadcast.
    specs = [
        tf.TensorSpec([d if d == 1 or sizes_are_known else None for d in x.shape], x.dtype)
        for x in arrays
    ]
    result = tf.function(select, input_signature=specs)(*map(tf.constant, arrays))
    np.testing.assert_array_equal(result, np.where(*arrays))


def test_broadcasts_of_many_groups_of_axes():
    x, y = np.random.default_rng(0).random((2, 2, 3, 2, 3, 2, 3, 2, 3))
    x, y = x[:, :1, :, :1, :, :1], y[:1, :, :1, :, :1, :, :1]
    np.testing.assert_array_equal(emit("AddV2", tf.constant(x), tf.constant(y)), x + y)


SIZES = (2, 3, 2, 1, 2, 3, 2, 2)
AXES = ([2], [7], [0, 2, 4, 6], [1, 2, 5], list(range(8)))


def _results(x, flags, a, b):
    """Ops on tensors of eight axes, each with what NumPy computes of the same numbers."""
    for axes in map(tuple, AXES):
        yield emit("Sum", x, integers(axes)), a.sum(axes)
        yield emit("Max", x, integers(axes), keep_dims=True), a.max(axes, keepdims=True)
        yield emit("Mean", x, integers(axes)), a.mean(axes)
        yield emit("Any", flags, integers(axes)), b.any(axes)
    for axis in (0, 4, 7):
        place = tf.constant(axis)
        yield emit("Cumsum", x, place), a.cumsum(axis)
        yield emit("ArgMax", x, place, output_type=tf.int32), a.argmax(axis)
        yield move("ConcatV2", [x, x], place), np.concatenate([a, a], axis)
        yield move("Pack", [x, x], axis=axis), np.stack([a, a], axis)
        yield from zip(
            move("Unpack", x, num=SIZES[axis], axis=axis), np.moveaxis(a, axis, 0), strict=True
        )
        yield from zip(move("Split", place, x, num_split=2), np.split(a, 2, axis), strict=True)
    yield move("SplitV", x, integers([1, 2]), tf.constant(1), num_split=2)[1], a[:, 1:]
    yield emit("Neg", x), -a
    yield emit("LogicalNot", flags), ~b
    yield emit("Softmax", x), np.exp(a) / np.exp(a).sum(-1, keepdims=True)


@pytest.mark.parametrize("sizes_are_known", [True, False])
@pytest.mark.parametrize("consumer", CONSUMERS)
def test_results_are_those_of_numpy(consumer, sizes_are_known):
    x = np.random.default_rng(0).integers(-9, 9, SIZES).astype(np.float32)
    expected = []

    def compute(*tensors):
        with lowering_for(TARGETS[consumer]):
            found = list(_results(*tensors, x, x > 0))
        expected.extend(numbers for _, numbers in found)
        return [result for result, _ in found]

    shape = [d if sizes_are_known or d in (1, 3) else None for d in SIZES]
    specs = [tf.TensorSpec(shape, tf.float32), tf.TensorSpec(shape, tf.bool)]
    results = tf.function(compute, input_signature=specs, autograph=False)(x, x > 0)
    for result, numbers in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, numbers, rtol=1e-5, atol=1e-6)


# Ops that `tensors.movement`, rules and `ops.even` make to fit.
OTHERS = "BatchMatMulV2 BroadcastTo PadV2 ReverseV2 Slice StridedSlice Tile Transpose".split()


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_all_ops_with_a_highest_rank_are_made_to_fit(consumer):
    assert TARGETS[consumer].ranks.keys() <= ranks.FITTED.union(OTHERS)
