"""uint32, short integers and 16-bit floats in storage dtypes at the boundary of programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering.targets import CONSUMERS
from tests.helpers import graph_of

INTEGERS = ("uint32", "uint16", "uint8", "int16", "int8")
BINARY = {
    "add": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": lax.div,
    "rem": lax.rem,
    "max": jnp.maximum,
    "less": jnp.less,
    "and": jnp.bitwise_and,
    "or": jnp.bitwise_or,
    "xor": jnp.bitwise_xor,
    "shift_left": lax.shift_left,
    "shift_right_logical": lax.shift_right_logical,
    "shift_right_arithmetic": lax.shift_right_arithmetic,
    "mulhi": lax.mulhi,
    "clamp": lambda x, y: lax.clamp(jnp.minimum(x, y), x, jnp.maximum(y, 5)),
}
UNARY = {
    "not": jnp.bitwise_not,
    "neg": jnp.negative,
    "abs": jnp.abs,
    "sign": jnp.sign,
    "population_count": lax.population_count,
    "clz": lax.clz,
    "sum": lambda x: x.sum(dtype=x.dtype),
    "prod": lambda x: x.prod(dtype=x.dtype),
    "max": jnp.max,
    "argmin": jnp.argmin,
    "sort": jnp.sort,
    "cummax": lambda x: lax.cummax(x, 0),
    "top_k": lambda x: lax.top_k(x, 3),
    "square": jnp.square,
    "to float32": lambda x: x.astype("float32"),
    "to uint8": lambda x: x.astype("uint8"),
    "to uint32": lambda x: x.astype("uint32"),
    "to int32": lambda x: x.astype("int32"),
    "scan": lambda x: lax.scan(lambda c, e: (c + e, c * e), x[0], x),
    "known": lambda x: jnp.where(x > np.iinfo(x.dtype).max // 2, x, 7),
}


def numbers(dtype):
    info, rng = np.iinfo(dtype), np.random.default_rng(0)
    edges = np.array([info.min, info.min + 1, 0, 1, 2, 7, info.max // 2, info.max - 1, info.max])
    return np.concatenate([edges, rng.integers(info.min, info.max, 12)]).astype(dtype)


def check(fun, *args, target):
    expected = jax.tree_util.tree_leaves(jax.jit(fun)(*args))
    converted = lowering.convert(fun, target=target, with_gradient=False)
    actual = tf.nest.flatten(tf.function(converted, autograph=False)(*args))
    for e, a in zip(expected, actual, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_array_equal(np.asarray(a.numpy(), np.float64), np.asarray(e, np.float64))


@pytest.mark.parametrize("target", CONSUMERS)
@pytest.mark.parametrize("dtype", [*INTEGERS, "int32"])
@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name, dtype, target):
    x = numbers(dtype)
    check(BINARY[name], np.repeat(x, len(x)), np.tile(x, len(x)), target=target)


@pytest.mark.parametrize("target", CONSUMERS)
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name, dtype, target):
    check(UNARY[name], numbers(dtype), target=target)


@pytest.mark.parametrize("target", CONSUMERS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_become_integers(dtype, target):
    x = np.float32([-1e30, -300.7, -1.5, 0, 0.9, 127.5, 255.5, 4e4, 2.0**31, 4.2e9, 1e30, np.inf])
    check(lambda x: x.astype(dtype), x, target=target)


@pytest.mark.parametrize("target", CONSUMERS)
def test_graphs_have_no_arithmetic_of_other_dtypes(target):
    def fun(x, y, z):
        bits = jax.random.bits(jax.random.wrap_key_data(x), (4,))
        return bits >> 3, y * 2 + y, jnp.sin(z) @ z

    args = np.uint32([1, 2]), np.arange(5, dtype=np.int8), np.ones((3, 3), np.float16)
    found = {
        x.dtype
        for op in graph_of(fun, *args, target=target).get_operations()
        if op.type not in ("Placeholder", "Cast", "Identity") and not _is_of_positions(op)
        for x in op.outputs
    }
    emulates = lowering.targets.TARGETS[target].emulates
    own = {tf.as_dtype(dtype) for dtype in ("int8", "uint32") if not emulates(dtype)}
    assert found <= {tf.int32, tf.float32, tf.bool} | own


def _is_of_positions(op):
    """Whether an op splits uint32 as positions in a sparse array, or is a shape for that."""
    followers = [op, *(follower for x in op.outputs for follower in x.consumers())]
    return any(follower.type == "SparseReshape" for follower in followers)


@pytest.mark.parametrize("target", CONSUMERS)
def test_indices_of_uint32(target):
    x = np.arange(6, dtype=np.float32)
    start = np.uint32(2**32 - 2)
    check(lambda x, i: lax.dynamic_slice(x, (i,), (2,)), x, start, target=target)
    check(lambda x, i: lax.dynamic_update_slice(x, -x[:2], (i,)), x, start, target=target)
    check(lambda x, i: x[jnp.stack([i, i - i])], x, start, target=target)
