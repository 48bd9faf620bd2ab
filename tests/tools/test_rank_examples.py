"""Examples of ops of which the highest rank is looked for."""

import pytest

from tools import rank_examples


@pytest.mark.parametrize("op", sorted(rank_examples.OPS))
def test_tensorflow_computes_an_example_of_some_dtype(op):
    computed = 0
    for dtype in ("float32", "int32", "bool"):
        try:
            found = [example.results() for example in rank_examples.rank_examples(op, dtype, 3)]
        except Exception:  # TensorFlow has no such kernel.
            continue
        assert found
        computed += 1
    assert computed
