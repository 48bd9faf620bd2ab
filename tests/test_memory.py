"""A constant costs the memory that TensorFlow takes for it, and few copies more."""

import pytest

from tests import held_constants
from tests.helpers import run_alone


@pytest.mark.skipif(not held_constants.FORGET.exists(), reason="only Linux tells the peak")
def test_a_large_constant():
    of_tensorflow, ours = (
        int(run_alone("tests.held_constants", by).split()[-1]) for by in ("tensorflow", "lowering")
    )
    assert of_tensorflow > held_constants.BYTES
    assert ours - of_tensorflow <= 3 * held_constants.BYTES
