"""uint32 becomes the int32 with the same bits, jaxpr in and jaxpr out."""

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import lowering
from lowering import jax_compat
from lowering.arrays.uint32 import INT32, UINT32
from lowering.passes import pipeline
from lowering.passes.fusion.uint32_quotients import fuse_uint32_quotients
from lowering.passes.inlining import inline_calls
from lowering.passes.jaxprs import called_jaxprs
from lowering.passes.legalize.bitcast_uint32 import bitcast_uint32
from lowering.passes.legalize.splitting import UNSPLIT
from lowering.targets import ONNX, PORTABLE, TFLITE
from tests.passes import meanings
from tests.passes.programs import primitives, traced
from tests.passes.test_split_uint32 import dtypes_of

X = np.random.default_rng(0).integers(2**32, size=(3, 4), dtype=np.uint32)
SMALL = np.arange(12, dtype=np.uint32).reshape(3, 4)


def bitcast(fun, *args):
    after = inline_calls(bitcast_uint32(traced(fun, *args), TFLITE), frozenset())
    assert UINT32 not in dtypes_of(after) and UNSPLIT.name not in primitives(after)
    return after


def test_without_uint32_nothing_changes():
    jaxpr = traced(lambda x: x + 1, np.float32(1))
    assert bitcast_uint32(jaxpr, TFLITE) is jaxpr


@pytest.mark.parametrize("target", [PORTABLE, ONNX])
def test_targets_with_uint32_keep_them(target):
    jaxpr = traced(lambda x: x + x, X)
    assert pipeline.whole_program(jaxpr, target)[0].in_avals[0].dtype == UINT32


def test_sums_and_bitwise_operations_are_those_of_the_bits():
    assert primitives(bitcast(lambda x, y: ~(x + y * x) ^ (x << y), X, X)) == [
        *("mul", "add", "not", "shift_left", "xor")
    ]


def test_moves_are_of_the_bits():
    assert primitives(bitcast(lambda x: x.T[:2], X)) == ["transpose", "slice"]


def test_conversions_to_int32_and_back_are_nothing():
    def fun(x):
        return lax.bitcast_convert_type(x.astype(np.int32), np.uint32) + x

    assert primitives(bitcast(fun, X)) == ["add"]


def test_constants_and_literals_have_the_bits():
    after = bitcast(lambda x: (x + X) * np.uint32(2**32 - 3), X)
    np.testing.assert_array_equal(after.consts[0], X.view(np.int32))
    (literal,) = (
        x.val for eqn in after.eqns for x in eqn.invars if isinstance(x, jex_core.Literal)
    )
    assert literal == -3


def test_loops_carry_the_bits():
    after = bitcast(lambda x: lax.fori_loop(0, 3, lambda _, y: y * x + y, x), X)
    (loop,) = (eqn for eqn in after.eqns if eqn.primitive.name in ("while", "scan"))
    assert [x.aval.dtype for x in loop.outvars if x.aval.shape == X.shape] == [INT32]


def _reduced(x):
    return lax.reduce(x, np.uint32(7), lambda a, b: (a + b) & np.uint32(0xFFFFF), (1,))


@pytest.mark.parametrize(
    "fun",
    [
        jnp.sort,
        lambda x: lax.sort((x, x + np.uint32(1)), num_keys=2),
        lambda x: lax.top_k(x, 2),
        lambda x: (x.max(0), x.min(1), x.argmax(0), x.argmin(1)),
        lambda x: (x // np.uint32(7), x % np.uint32(1000), x // x[::-1]),
        lambda x: (x < x[::-1], x >= np.uint32(2**31), jnp.maximum(x, x[::-1])),
        lambda x: jnp.clip(x, np.uint32(5), np.uint32(2**31 + 5)),
        lambda x: (x.astype(np.float32), x.astype(np.uint8), x.astype(np.bool_)),
        lambda x: (x.astype(np.float32) * np.float32(1.5)).astype(np.uint32),
        lambda x: (x.astype(np.int8).astype(np.uint32), (x > 5).astype(np.uint32)),
        lambda x: (jnp.cumsum(x, 1), lax.cummax(x, 0), lax.cumprod(x, 1)),
        lambda x: x.at[jnp.array([0, 0])].max(x[1:]),
        lambda x: x.at[jnp.array([0, 0])].add(x[1:]),
        lambda x: x.at[x[0] % np.uint32(3), np.uint32(1)].set(np.uint32(9), mode="drop"),
        lambda x: x.at[x % np.uint32(5), np.uint32(1)].get(mode="fill"),
        lambda x: lax.dynamic_slice(x, (x[0, 0], np.uint32(1)), (2, 2)),
        lambda x: lax.dynamic_update_slice(x, x[:1, :1], (x[0, 0], np.uint32(1))),
        lambda x: (jnp.sign(x), jnp.abs(x), lax.population_count(x), lax.clz(x)),
        lambda x: (lax.shift_right_logical(x, np.uint32(3)), x >> x),
        lambda x: lax.bitcast_convert_type(x, np.uint8),
        lambda x: lax.dot(x, x.T),
        lambda x: lax.reduce_window(x, np.uint32(0), lax.max, (2, 2), (1, 1), "VALID"),
        lambda x: jnp.where(x > 3, x, x**2),
        _reduced,
    ],
)
@pytest.mark.parametrize("x", [X, SMALL], ids=["large", "small"])
def test_results_have_the_bits_of_uint32(fun, x):
    after = bitcast(fun, x)
    on_bits = lowering.convert(jex_core.jaxpr_as_fun(after), target="portable")
    results = on_bits(x.view(np.int32))
    for expected, actual in zip(jax.tree.leaves(fun(jnp.asarray(x))), results, strict=True):
        expected = np.asarray(expected)
        bits = expected.view(np.int32) if expected.dtype == UINT32 else expected
        np.testing.assert_array_equal(bits, actual)


def test_clamp_is_in_the_order_of_uint32():
    """The example of g3doc/architecture.md."""
    after = bitcast(lambda x: lax.clamp(np.uint32(5), x, np.uint32(2**31 + 5)), X)
    (bits,) = meanings.run(after, X.view(np.int32))
    np.testing.assert_array_equal(np.asarray(bits).view(np.uint32), X.clip(5, 2**31 + 5))


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (lambda x: x % np.uint32(64), ["and"]),
        (lambda x: x // np.uint32(8), ["shift_right_logical"]),
        (lambda x: jnp.remainder(x, 64) + jnp.remainder(x, 8), ["and", "and", "add"]),
        (lambda x: lax.rem(x, np.uint32(1000)), ["rem"]),
        (lambda x: x % np.uint32(1000), ["rem"]),
    ],
)
def test_quotients_by_numbers(fun, expected):
    jaxpr = fuse_uint32_quotients(traced(fun, X))
    names = primitives(jax_compat.eliminate_dead_code(inline_calls(jaxpr, frozenset())))
    of_literals = {"sub", "population_count"}
    assert [name for name in names if name not in of_literals] == expected
    results = jax.core.eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, X)
    np.testing.assert_array_equal(results[0], fun(jnp.asarray(X)))


def test_quotients_by_numbers_in_loops():
    jaxpr = fuse_uint32_quotients(
        traced(lambda x: lax.fori_loop(0, 3, lambda _, y: y % 64 + y, x), X)
    )
    (loop,) = (eqn for eqn in jaxpr.eqns if eqn.primitive.name in ("while", "scan"))
    names = [name for called in called_jaxprs(loop) for name in primitives(called)]
    assert "and" in names and "rem" not in names


def test_without_quotients_of_uint32_nothing_changes():
    for fun, x in ((lambda x: x % 64, np.int32(1)), (lambda x: x + x, X)):
        jaxpr = traced(fun, x)
        assert fuse_uint32_quotients(jaxpr) is jaxpr
