"""Groups that move elements become one op. No TensorFlow op is made."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes import pipeline
from lowering.targets import PORTABLE, TF, Mode
from tests.passes.meanings import MEANINGS, assert_means
from tests.passes.programs import primitives, traced

X = np.arange(24, dtype=np.float32).reshape(4, 6)
IMAGES = np.arange(2 * 4 * 6 * 8, dtype=np.float32).reshape(2, 4, 6, 8)


def shuffled(x, r=2):
    b, h, w, c = x.shape
    x = x.reshape(b, h, w, r, r, c // r**2).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(b, h * r, w * r, c // r**2)


def unshuffled(x, r=2):
    b, h, w, c = x.shape
    x = x.reshape(b, h // r, r, w // r, r, c).transpose(0, 1, 3, 2, 4, 5)
    return x.reshape(b, h // r, w // r, c * r**2)


FOUND = {
    **{
        f"{mode} by {widths}": (
            lambda x, mode=mode, widths=widths: jnp.pad(x, widths, mode), X, ["mirror_pad"]
        )
        for mode in ("reflect", "symmetric")
        for widths in (1, (1, 2), ((0, 3), (2, 0)), ((3, 3), (5, 5)), ((0, 1), (0, 0)))
    },
    "symmetric by all": (lambda x: jnp.pad(x, ((4, 4), (6, 6)), "symmetric"), X, ["mirror_pad"]),
    "an image again": (
        lambda x: jnp.pad(x, ((0, 0), (1, 1), (2, 2), (0, 0)), "reflect"), IMAGES, ["mirror_pad"]
    ),
    "pixel shuffle": (shuffled, IMAGES, ["depth_to_space"]),
    "pixel unshuffle": (unshuffled, IMAGES, ["space_to_depth"]),
    "one row": (lambda x: x[1], X, ["slice_and_squeeze"]),
    "one column": (lambda x: x[:, -2], X, ["slice_and_squeeze"]),
    "one row of some": (lambda x: x[1, 2:4], X, ["slice_and_squeeze"]),
    "one element": (lambda x: x[1, 2], X, ["slice_and_squeeze"]),
    "the last column again": (
        lambda x: jnp.repeat(x[:, 5:], 3, 1), X, ["slice", "broadcast_in_dim"]
    ),
    "a row of images again": (
        lambda x: jnp.repeat(x[:, :1], 3, 1), IMAGES, ["slice", "broadcast_in_dim"]
    ),
}  # fmt: skip


def padded_once(x):
    return jnp.pad(x, ((0, 0), (1, 0)), "reflect")


def _transposed(x):
    """Along an axis of size one, but another than that which is long."""
    return lax.broadcast_in_dim(x[:, :1], (1, 4, 4), (2, 0)).reshape(4, 4)


OTHERS = {
    "more than there is": lambda x: jnp.pad(x, ((0, 0), (7, 7)), "reflect"),
    "one end twice": lambda x: padded_once(padded_once(x)),
    "both modes": lambda x: jnp.pad(jnp.pad(x, 1, "reflect"), 1, "symmetric"),
    "not turned around": lambda x: jnp.concatenate([x[1:2], x]),
    "of another": lambda x: jnp.concatenate([jnp.flip(jnp.sin(x)[1:3], 0), x]),
    "from the middle": lambda x: jnp.concatenate([jnp.flip(x[2:4], 0), x]),
    "of every second": lambda x: jnp.concatenate([jnp.flip(x[1:4:2], 0), x]),
    "of a part": lambda x: jnp.concatenate([jnp.flip(x[1:3, :5], 0), x[:, :5]]),
    "wrap": lambda x: jnp.pad(x, 2, "wrap"),
    "edge": lambda x: jnp.pad(x, 2, "edge"),
    "each row again": lambda x: jnp.repeat(x, 3, 0),
    "a column as a row": _transposed,
    "every second row": lambda x: x[::2],
    "another order of pixels": lambda x: x.reshape(1, 2, 2, 2, 3, 1).transpose(
        0, 1, 4, 2, 3, 5
    ).reshape(1, 6, 4, 1),
}  # fmt: skip


def lowered(fun, *args, target=PORTABLE):
    jaxpr, functions = pipeline.whole_program(traced(fun, *args))
    return pipeline.optimized(jaxpr, Mode.GRAPH, functions, target)


@pytest.mark.parametrize("case", FOUND)
def test_what_is_found_and_what_it_means(case):
    fun, x, expected = FOUND[case]
    jaxpr = lowered(fun, x)
    assert primitives(jaxpr) == expected
    assert_means(jaxpr, fun, x)
    assert not MEANINGS.keys() & set(primitives(lowered(fun, x, target=TF)))


@pytest.mark.parametrize("case", OTHERS)
def test_what_means_the_same_otherwise(case):
    fun = OTHERS[case]
    assert_means(lowered(fun, X), fun, X)


def test_what_others_need_stays():
    def fun(x):
        once = jnp.pad(x, ((0, 0), (1, 0)), "reflect")
        return jnp.pad(once, ((0, 0), (0, 1)), "reflect"), once

    jaxpr = lowered(fun, X)
    assert primitives(jaxpr) == ["mirror_pad", "mirror_pad"]
    assert_means(jaxpr, lambda x: fun(x), X)


def test_slices_that_are_used_with_their_axis_stay():
    def fun(x):
        row = lax.slice(x, (1, 0), (2, 6))
        return lax.squeeze(row, (0,)), row

    jaxpr = lowered(fun, X)
    assert primitives(jaxpr) == ["slice", "squeeze"]
    assert_means(jaxpr, fun, X)
