"""Ops that broadcast, on tensors of any rank."""

import numpy as np
import pytest
import tensorflow as tf

from lowering.ops import emit

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
