"""Reductions keep their axes where later equations put them back, jaxpr in and jaxpr out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering.passes.inlining import inline_calls
from lowering.passes.simplify.keepdims import keep_axes
from tests.passes.meanings import assert_means
from tests.passes.programs import primitives, traced

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(2, 3, 4)


def _expanded(fun, axis):
    """A function of a reduction, whose axis comes back."""
    return lambda x: fun(jnp.expand_dims(x.sum(axis), axis), x)


KEPT = {
    "sum": _expanded(lambda total, x: x / total, 1),
    "last axis": _expanded(lambda total, x: x / total, 2),
    "keepdims": lambda x: x - x.max(1, keepdims=True),
    "all": lambda x: x - jnp.full((1, 1, 1), 2.0) * x.prod((0, 1), keepdims=True),
    "elementwise between": lambda x: x * lax.rsqrt(1 + jnp.square(x.min(1)))[:, None],
    "of two reductions": lambda x: x * (x.sum(1) + x.max(1))[:, None],
    "in two uses": lambda x: x * x.sum(1)[:, None] - x.sum(1)[:, None],
}
STAYS = {
    "reduced alone": lambda x: x.sum(1),
    "also a result": lambda x: ((y := x.sum(1))[:, None] * x, y),
    "other axes come back": lambda x: x[:, 0] * x.sum(1)[None].reshape(2, 4),
    "of other axes": lambda x: x[:2, :2, :2] * (x[:2, :2, :2].sum(0) + x[:2, :2, :2].sum(1))[None],
    "used with another": lambda x: (x.sum(1) + x[:, 0])[:, None],
    "of integers": lambda x: x.astype(np.int32).sum(1)[:, None],
    "broadcast to more": lambda x: x * lax.broadcast_in_dim(x.sum(1), x.shape, (0, 2)),
}


@pytest.mark.parametrize("case", KEPT)
def test_axes_are_kept(case):
    after = keep_axes(inline_calls(traced(KEPT[case], X), frozenset()))
    found = primitives(after)
    assert "reduce_keeping_axes" in found
    assert not {"reduce_sum", "reduce_max", "reduce_min", "reduce_prod"} & set(found)
    assert_means(after, KEPT[case], X)


@pytest.mark.parametrize("case", STAYS)
def test_axes_are_not_kept(case):
    before = inline_calls(traced(STAYS[case], X), frozenset())
    after = keep_axes(before)
    assert "reduce_keeping_axes" not in primitives(after)
    assert_means(after, STAYS[case], X)


def test_symbolic_sizes():
    x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b, n"), np.float32)
    after = keep_axes(inline_calls(traced(lambda x: x / x.sum(1, keepdims=True), x), frozenset()))
    assert "reduce_keeping_axes" in primitives(after)
