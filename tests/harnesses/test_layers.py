"""Graphs of layers have no more nodes than those of the layers by hand, but for known reasons.

All layers on the portable target; in the files of runtimes one of several parts, and another part
whenever sources change. `python -m tools.layers` counts all.
"""

import jax
import numpy as np
import pytest
import tensorflow as tf

from harnesses.layers import all_layers, counting, reasons
from tests.turns import turns
from tools.layers import judged

LAYERS = all_layers()
_PARTS = 16


def part(what: str, parts: int) -> list[str]:
    """The names of one part of all layers, or of all of them."""
    names = list(LAYERS)
    return [
        name for chosen in turns([names[i::parts] for i in range(parts)], what) for name in chosen
    ]


def test_each_exception_has_a_reason():
    assert not reasons.problems()
    assert all(name in LAYERS for of in reasons.recorded().values() for name in of)


def test_portable():
    found = [
        judged(name, "portable", *counting.counts(LAYERS[name], "portable")) for name in LAYERS
    ]
    assert not (wrong := [problem for problem in found if problem]), "\n".join(wrong)


def test_files():
    """Of the runtimes whose nodes have been counted."""
    found = [
        judged(name, target, *counting.counts(LAYERS[name], target))
        for target in sorted(reasons.recorded().keys() - {"portable"})
        for name in part(target, _PARTS)
    ]
    assert not (wrong := [problem for problem in found if problem]), "\n".join(wrong)


@pytest.mark.parametrize("name", part("numbers", 8))
def test_both_give_what_jax_gives(name):
    layer = LAYERS[name]
    expected = jax.tree.leaves(jax.jit(layer.fun)(*layer.args))
    for graph in (counting.by_hand(layer), counting.ours(layer)):
        actual = list(graph(*map(tf.constant, layer.args)).values())
        for x, y in zip(actual, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=2e-4, atol=1e-5)
