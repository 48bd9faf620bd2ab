"""Groups of natural targets are found as people write them, nowhere else, and mean the same.

What it means is in `meanings`. No TensorFlow op is made.
"""

import math

import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import jax_compat
from lowering.passes import pipeline
from lowering.passes.inlining import inline_calls
from lowering.targets import ONNX, PORTABLE, TF, Mode
from tests.passes.meanings import MEANINGS, assert_means, run
from tests.passes.programs import primitives, traced

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 4)
Y = np.cos(X) * 2
UNSIGNED = np.arange(24, dtype=np.uint32).reshape(2, 3, 4) * 7
INTEGERS = np.arange(-12, 12, dtype=np.int32).reshape(2, 3, 4) * 5
IMAGES = np.linspace(-1, 1, 2 * 4 * 4 * 3, dtype=np.float32).reshape(2, 4, 4, 3)
EMPTY = np.zeros((2, 0, 4), np.float32)


def _sum_of_windows(x, size=2, padding="VALID"):
    return lax.reduce_window(x, 0.0, lax.add, (1, size, size, 1), (1, 2, 2, 1), padding)


def _log_of_sum(x):
    return jnp.log(jnp.exp(x).sum(-1, keepdims=True))


# A program as people write it, its arguments, and primitives that it becomes.
FOUND = {
    "relu": (jax.nn.relu, (X,), ["max"]),
    "relu by > 0": (lambda x: jnp.where(x > 0, x, 0), (X,), ["max"]),
    "relu by >= 0": (lambda x: jnp.where(x >= 0, x, 0), (X,), ["max"]),
    "relu by < 0": (lambda x: jnp.where(x < 0, 0, x), (X,), ["max"]),
    "relu by <= 0": (lambda x: jnp.where(x <= 0, 0, x), (X,), ["max"]),
    "relu6": (jax.nn.relu6, (X,), ["relu6"]),
    "relu6 by extrema": (lambda x: jnp.minimum(jnp.maximum(x, 0), 6), (X,), ["relu6"]),
    "leaky relu": (lambda x: jax.nn.leaky_relu(x, 0.2), (X,), ["leaky_relu"]),
    "leaky relu by > 0": (lambda x: jnp.where(x > 0, x, 0.1 * x), (X,), ["leaky_relu"]),
    "elu": (jax.nn.elu, (X,), ["elu"]),
    "celu": (jax.nn.celu, (X,), ["elu"]),
    "elu with a factor": (lambda x: jax.nn.elu(x, 2.0), (X,), ["scaled_elu"]),
    "celu with a factor": (lambda x: jax.nn.celu(x, 2.0), (X,), ["div", "elu", "mul"]),
    "selu": (jax.nn.selu, (X,), ["scaled_elu", "mul"]),
    "hard tanh": (jax.nn.hard_tanh, (X,), ["clamp"]),
    "reciprocal of a root": (lambda x: 1 / jnp.sqrt(x), (X * X + 1,), ["rsqrt"]),
    "softplus": (jax.nn.softplus, (X,), ["softplus"]),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), (X,), ["gelu"]),
    "gelu by products": (lambda x: 0.5 * x * (1 + lax.erf(x * math.sqrt(0.5))), (X,), ["gelu"]),
    "gelu by a quotient": (lambda x: x * 0.5 * (1 + lax.erf(x / math.sqrt(2))), (X,), ["gelu"]),
    "gelu, half of a sum": (lambda x: x * (0.5 * (1 + lax.erf(x / math.sqrt(2)))), (X,), ["gelu"]),
    "softmax": (jax.nn.softmax, (X,), ["softmax"]),
    "softmax of the first axis": (
        lambda x: jax.nn.softmax(x, 0), (X,), ["transpose", "softmax", "transpose"]
    ),
    "softmax of two axes": (
        lambda x: jax.nn.softmax(x, (1, 2)), (X,), ["reshape", "softmax", "reshape"]
    ),
    "log softmax": (jax.nn.log_softmax, (X,), ["log_softmax"]),
    "log softmax of an axis": (
        lambda x: jax.nn.log_softmax(x, 1), (X,), ["transpose", "log_softmax", "transpose"]
    ),
    "log softmax as people write it": (
        lambda x: (y := x - x.max(-1, keepdims=True)) - _log_of_sum(y), (X,), ["log_softmax"]
    ),
    "logsumexp": (
        jax.nn.logsumexp, (X,), ["reduce_max", "clamp", "sub", "exp", "reduce_sum", "log", "add"]
    ),
    "logsumexp of an axis": (
        lambda x: jax.nn.logsumexp(x, 1), (X,),
        "reduce_keeping_axes clamp sub exp reduce_keeping_axes log add squeeze".split(),
    ),
    "floor divide": (lambda x: x // 3, (INTEGERS,), ["floor_divide"]),
    "remainder": (lambda x: x % 7, (INTEGERS,), ["floor_mod"]),
    "remainder of uint32": (lambda x: x % np.uint32(7), (UNSIGNED,), ["rem"]),
    "remainder by a power of two": (lambda x: x % np.uint32(8), (UNSIGNED,), ["and"]),
    "quotient by a power of two": (
        lambda x: x // np.uint32(8), (UNSIGNED,), ["population_count", "shift_right_logical"]
    ),
    "remainder of floats": (lambda x: x % 1.5, (X,), ["floor_mod"]),
    "absolute value of parts": (lambda x, y: jnp.abs(lax.complex(x, y)), (X, Y), ["size_of_parts"]),
    "clip": (lambda x: jnp.clip(x, -1, 2), (X,), ["clamp"]),
    "clip by extrema": (lambda x: jnp.minimum(jnp.maximum(x, -1), 2), (X,), ["clamp"]),
    "mean": (lambda x: x.mean(1), (X,), ["reduce_mean"]),
    "mean with its axes": (lambda x: x - x.mean(1, keepdims=True), (X,), ["reduce_mean", "sub"]),
    "mean of windows": (lambda x: _sum_of_windows(x) / 4, (IMAGES,), ["reduce_window_mean"]),
    "mean of windows without their padding": (
        lambda x: _sum_of_windows(x, 3, "SAME")
        / _sum_of_windows(jnp.ones((1, 4, 4, 1)), 3, "SAME"),
        (IMAGES,),
        ["reduce_window_mean_of_present"],
    ),
    "sigmoid by a quotient": (lambda x: 1 / (1 + jnp.exp(-x)), (X,), ["logistic"]),
    "leaky relu by a maximum": (lambda x: jnp.maximum(x, 0.1 * x), (X,), ["leaky_relu"]),
    "leaky relu by a maximum, exchanged": (
        lambda x: jnp.maximum(x * 0.1, x), (X,), ["leaky_relu"]
    ),
    "squared difference": (lambda x, y: (x - y) ** 2, (X, Y), ["squared_difference"]),
    "square of a difference": (lambda x, y: jnp.square(x - y), (X, Y), ["squared_difference"]),
    "difference times itself": (lambda x, y: (x - y) * (x - y), (X, Y), ["squared_difference"]),
    "inverse root": (lambda x: lax.rsqrt(x + 1e-5), (X,), ["add", "rsqrt_of_positive"]),
    "inverse root by a quotient": (
        lambda x: 1 / jnp.sqrt(jnp.maximum(x, 1e-5)), (X,), ["max", "rsqrt_of_positive"]
    ),
    "sum of nothing": (lambda x: x.sum(1), (EMPTY,), ["broadcast_in_dim"]),
    "product of nothing": (lambda x: x.prod(1), (EMPTY,), ["broadcast_in_dim"]),
    "maximum of nothing": (
        lambda x: x.max(1, initial=-np.inf), (EMPTY,), ["broadcast_in_dim", "max"]
    ),
}  # fmt: skip


# What is like it, but is not this primitive: other numbers or dtypes, or values for numbers.
UNLIKE = {
    "relu of integers": (lambda x: jnp.where(x > 0, x, 0), (INTEGERS,), "max"),
    "relu with another bound": (lambda x: jnp.where(x > 1, x, 0), (X,), "max"),
    "relu of another": (lambda x, y: jnp.where(x > 0, y, 0), (X, Y), "max"),
    "relu6 up to 5": (lambda x: jnp.minimum(jnp.maximum(x, 0), 5), (X,), "relu6"),
    "relu6 of integers": (jax.nn.relu6, (INTEGERS,), "relu6"),
    "leaky relu by a value": (jax.nn.leaky_relu, (X, X[0, 0, 0]), "leaky_relu"),
    "leaky relu of another": (lambda x, y: jnp.where(x > 0, x, 0.1 * y), (X, Y), "leaky_relu"),
    "leaky relu by a maximum, steep": (lambda x: jnp.maximum(x, 2 * x), (X,), "leaky_relu"),
    "sigmoid of another": (lambda x: 2 / (1 + jnp.exp(-x)), (X,), "logistic"),
    "mean of windows by other counts": (
        lambda x: _sum_of_windows(x) / _sum_of_windows(jnp.full_like(x, 2)), (IMAGES,),
        "reduce_window_mean_of_present",
    ),
    "elu with a negative factor": (lambda x: jax.nn.elu(x, -2.0), (X,), "elu"),
    "elu with a value": (jax.nn.elu, (X, Y[0, 0, 0]), "elu"),
    "softplus with another term": (lambda x: jnp.logaddexp(x, 1), (X,), "softplus"),
    "gelu by tanh": (jax.nn.gelu, (X,), "gelu"),
    "gelu with other numbers": (lambda x: 0.5 * x * (1 + lax.erf(x * 0.7)), (X,), "gelu"),
    "softmax in 16 bits": (jax.nn.softmax, (X.astype(np.float16),), "softmax"),
    "softmax with other axes": (
        lambda x: (e := jnp.exp(x - x.max(1, keepdims=True))) / e.sum(2, keepdims=True), (X,),
        "softmax",
    ),
    "log softmax of another": (
        lambda x, y: x - x.max(-1, keepdims=True) - _log_of_sum(y), (X, Y), "log_softmax"
    ),
    "logsumexp in 16 bits": (jax.nn.logsumexp, (X.astype(np.float16),), "clamp"),
    "floor divide by -1": (lambda x: x // -1, (INTEGERS,), "floor_divide"),
    "floor divide by 0": (lambda x: x // 0, (INTEGERS,), "floor_divide"),
    "floor divide by a value": (jnp.floor_divide, (INTEGERS, INTEGERS[0, 0, 0]), "floor_divide"),
    "floor divide in 8 bits": (lambda x: x // 3, (INTEGERS.astype(np.int8),), "floor_divide"),
    "remainder by a value": (jnp.remainder, (INTEGERS, INTEGERS[0, 0, 0]), "floor_mod"),
    "remainder by infinity": (lambda x: x % np.inf, (X,), "floor_mod"),
    "absolute value of complex": (lambda x: jnp.abs(x * 1j), (X,), "size_of_parts"),
    "clip to nothing": (lambda x: jnp.minimum(jnp.maximum(x, 2), -1), (X,), "clamp"),
    "clip to a value": (lambda x, y: jnp.clip(x, -1, y), (X, Y[0, 0, 0]), "clamp"),
    "clip of integers": (lambda x: jnp.clip(x, -1, 2), (INTEGERS,), "clamp"),
    "mean by another number": (lambda x: x.sum(1) / 2, (X,), "reduce_mean"),
    "mean in 16 bits": (lambda x: x.sum(1) / 3, (X.astype(np.float16),), "reduce_mean"),
    "mean of nothing": (lambda x: x.mean(1), (EMPTY,), "reduce_mean"),
    "mean of maxima": (lambda x: x.max(1) / 3, (X,), "reduce_mean"),
    "mean of windows by 3": (
        lambda x: _sum_of_windows(x) / 3, (IMAGES,), "reduce_window_mean"
    ),
    "squared difference of integers": (
        lambda x, y: (x - y) ** 2, (INTEGERS, INTEGERS.T.reshape(2, 3, 4)), "squared_difference"
    ),
    "cube of a difference": (lambda x, y: (x - y) ** 3, (X, Y), "squared_difference"),
    "product of differences": (lambda x, y: (x - y) * (y - x), (X, Y), "squared_difference"),
    "inverse root of what may be zero": (
        lambda x: lax.rsqrt(jnp.maximum(x, 0) + x), (X,), "rsqrt_of_positive"
    ),
    "sum of something": (lambda x: x.sum(1), (X,), "broadcast_in_dim"),
}  # fmt: skip


def lowered(fun, *args, target=PORTABLE):
    """The program of a function as it is lowered in a graph."""
    jaxpr, functions = pipeline.whole_program(traced(fun, *args), target)
    return pipeline.optimized(jaxpr, Mode.GRAPH, functions, target)


@pytest.mark.parametrize("case", FOUND)
def test_what_is_found_and_what_it_means(case):
    fun, args, expected = FOUND[case]
    jaxpr = lowered(fun, *args)
    assert primitives(jaxpr) == expected
    assert_means(jaxpr, fun, *args)


@pytest.mark.parametrize("case", UNLIKE)
def test_what_is_not_found(case):
    fun, args, primitive = UNLIKE[case]
    jaxpr = lowered(fun, *args)
    assert primitive not in primitives(jaxpr)
    assert_means(jaxpr, fun, *args, rtol=1e-2 if args[0].dtype == np.float16 else 1e-5, atol=1e-5)


@pytest.mark.parametrize("case", FOUND)
def test_what_others_need_a_part_of_stays(case):
    fun, args, _ = FOUND[case]
    jaxpr = inline_calls(pipeline.whole_program(traced(fun, *args))[0], frozenset())
    parts = [var for eqn in jaxpr.eqns for var in eqn.outvars if var not in jaxpr.jaxpr.outvars]
    needed = jax_compat.with_equations(
        jaxpr, jaxpr.jaxpr.invars, [*jaxpr.jaxpr.outvars, *parts], jaxpr.eqns
    )
    optimized = pipeline.optimized(needed, Mode.GRAPH, frozenset(), PORTABLE)
    assert not MEANINGS.keys() & set(primitives(optimized))
    assert_means(optimized, jex_core.jaxpr_as_fun(needed), *args)


@pytest.mark.parametrize("case", FOUND)
def test_exact_targets_have_none(case):
    fun, args, _ = FOUND[case]
    found = set(primitives(lowered(fun, *args, target=TF)))
    assert found & MEANINGS.keys() <= {"softmax"}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["gelu", "gelu by products", "gelu by a quotient", "softmax"])
def test_what_is_found_in_16_bits(case, dtype):
    """For consumers; constants are those of float32, which they know functions by."""
    fun, (x,), expected = FOUND[case]
    jaxpr = lowered(fun, x.astype(dtype), target=ONNX)
    assert primitives(jaxpr) == expected
    (result,) = run(jaxpr, x)
    np.testing.assert_allclose(result, fun(x), rtol=0.02, atol=0.01)
