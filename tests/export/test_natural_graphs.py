"""The graphs of the portable target are the ones that a person would have written.

`pytest -s` prints the table of programs and their ops.
"""

import collections
import zlib

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from harnesses import models, programs
from harnesses.harness import all_harnesses
from harnesses.selection import CORE_DTYPES

IMAGES = np.random.default_rng(0).normal(size=(2, 8, 8, 4)).astype(np.float32)
ROWS = IMAGES[0, 0, :, :]
INTEGERS = np.arange(-12, 12, dtype=np.int32).reshape(4, 6)
UNSIGNED = np.arange(24, dtype=np.uint32).reshape(4, 6)

# Rows with infinities, which natural graphs have to get right.
EXTREME = np.array(
    [
        [np.inf, 1, 0, -np.inf],
        [-np.inf, 0, 1, 2],
        [-np.inf] * 4,
        [np.inf] * 4,
        [3e38, -3e38, 88, -104],
        [1e-30, 0, 1e30, -1],
    ],
    np.float32,
)
# Indices in bounds, counted from the end, and out of bounds.
INDICES = np.array([[-100, -9, -8, -1, 0, 7], [8, 9, 100, 2**31 - 1, -(2**31), 2]], np.int32)

# The ops of which there is nothing to see.
_HIDDEN = {"Placeholder", "Const", "Identity", "NoOp"}


def layer_norm(x):
    mean = x.mean(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def of_module(module, x):
    variables = module.init(jax.random.key(0), x)
    return lambda x: module.apply(variables, x)


_NORM = ["AddV2", "Rsqrt", "Sub", "Mul", "Mul", "AddV2"]
_TAKE = ["ClipByValue", "FloorMod", "GatherV2"]
_LOG_SUM_EXP = ["Max", "ClipByValue", "Sub", "Exp", "Sum", "Log", "AddV2"]
_GELU = ["Mul", "Erfc", "Mul", "Mul"]

# Programs, their argument, and their only ops.
TABLE = {
    "relu": (jax.nn.relu, IMAGES, ["Relu"]),
    "relu where": (lambda x: jnp.where(x > 0, x, 0), IMAGES, ["Relu"]),
    "relu6": (jax.nn.relu6, IMAGES, ["Relu6"]),
    "leaky_relu": (jax.nn.leaky_relu, IMAGES, ["LeakyRelu"]),
    "leaky_relu where": (lambda x: jnp.where(x > 0, x, 0.2 * x), IMAGES, ["LeakyRelu"]),
    "elu": (jax.nn.elu, IMAGES, ["Elu"]),
    "celu": (jax.nn.celu, IMAGES, ["Elu"]),
    "softplus": (jax.nn.softplus, IMAGES, ["Softplus"]),
    "silu": (jax.nn.silu, IMAGES, ["Sigmoid", "Mul"]),
    "gelu, tanh": (jax.nn.gelu, IMAGES, ["Square", *["Mul"] * 5, *["AddV2"] * 2, "Tanh"]),
    "gelu, erf": (lambda x: jax.nn.gelu(x, approximate=False), IMAGES, _GELU),
    "gelu, written out": (lambda x: 0.5 * x * (1 + lax.erf(x / np.sqrt(2.0))), IMAGES, _GELU),
    "softmax": (jax.nn.softmax, IMAGES, ["Softmax"]),
    "softmax, axis 1": (
        lambda x: jax.nn.softmax(x, 1),
        IMAGES,
        ["Einsum", "Softmax"] * 1 + ["Einsum"],
    ),
    "softmax, two axes": (
        lambda x: jax.nn.softmax(x, (2, 3)),
        IMAGES,
        ["Reshape", "Softmax", "Reshape"],
    ),
    "axes of size one that move": (lambda x: x.swapaxes(0, 1), IMAGES[:1], ["Reshape"]),
    "a block at a known place": (
        lambda x: x.at[1:3].set(x[4:6]),
        ROWS,
        ["Slice", "TensorStridedSliceUpdate"],
    ),
    "log_softmax": (jax.nn.log_softmax, IMAGES, ["LogSoftmax"]),
    "log_softmax, axis 0": (
        lambda x: jax.nn.log_softmax(x, 0),
        ROWS,
        ["Einsum", "LogSoftmax", "Einsum"],
    ),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, -1), IMAGES, [*_LOG_SUM_EXP, "Squeeze"]),
    "logsumexp, keepdims": (
        lambda x: jax.scipy.special.logsumexp(x, (1, 2), keepdims=True),
        IMAGES,
        _LOG_SUM_EXP,
    ),
    "logsumexp, all axes": (jax.nn.logsumexp, IMAGES, _LOG_SUM_EXP),
    "logsumexp, vmap": (jax.vmap(jax.nn.logsumexp), ROWS, [*_LOG_SUM_EXP, "Squeeze"]),
    "max": (lambda x: x.max(-1), IMAGES, ["Max"]),
    "min": (lambda x: x.min((1, 2)), IMAGES, ["Min"]),
    "mean": (lambda x: x.mean(-1), IMAGES, ["Mean"]),
    "var": (lambda x: x.var((0, 1)), IMAGES, ["Mean", "SquaredDifference", "Mean"]),
    "maximum": (lambda x: jnp.maximum(x, 1.5), IMAGES, ["Maximum"]),
    "argmax": (lambda x: x.argmax(-1), IMAGES, ["ArgMax"]),
    "argmin of integers": (lambda x: x.argmin(0), INTEGERS, ["ArgMin"]),
    "sign": (jnp.sign, IMAGES, ["Sign"]),
    "clip": (lambda x: jnp.clip(x, -1, 1), IMAGES, ["ClipByValue"]),
    "clip, one bound": (lambda x: jnp.clip(x, None, 1), IMAGES, ["Minimum"]),
    "clip of integers": (lambda x: jnp.clip(x, -1, 1), INTEGERS, ["Maximum", "Minimum"]),
    "x // 3": (lambda x: x // 3, INTEGERS, ["FloorDiv"]),
    "x // 3, jit and vmap": (jax.vmap(jax.jit(lambda x: x // 3)), INTEGERS, ["FloorDiv"]),
    "x % 3": (lambda x: x % 3, INTEGERS, ["FloorMod"]),
    "x % 3 of uint32": (lambda x: x % 3, UNSIGNED, ["FloorMod"]),
    "x % 3 of floats": (lambda x: x % 3, IMAGES, ["FloorMod"]),
    "x % -2.5": (lambda x: x % -2.5, IMAGES, ["FloorMod"]),
    "max_pool": (lambda x: nn.max_pool(x, (2, 2), (2, 2)), IMAGES, ["MaxPool"]),
    "max_pool, SAME": (lambda x: nn.max_pool(x, (3, 3), (2, 2), "SAME"), IMAGES, ["MaxPool"]),
    "avg_pool": (lambda x: nn.avg_pool(x, (2, 2), (2, 2)), IMAGES, ["AvgPool"]),
    "avg_pool, SAME": (
        lambda x: nn.avg_pool(x, (3, 3), (2, 2), "SAME"),
        IMAGES,
        ["PadV2", "AvgPool"],
    ),
    "layer norm": (
        layer_norm,
        ROWS,
        ["Mean", "Sub", "Square", "Mean", "AddV2", "Rsqrt", "Mul"],
    ),
    "layer norm of flax": (
        of_module(nn.LayerNorm(use_fast_variance=False), ROWS),
        ROWS,
        ["Mean", "Square", "Mean", *_NORM],
    ),
    # E[x^2] - E[x]^2, which may be negative.
    "layer norm of flax, fast": (
        of_module(nn.LayerNorm(), ROWS),
        ROWS,
        ["Square", "Mean", "Mean", "Square", "Sub", "Relu", *_NORM],
    ),
    "RMS norm of flax": (
        of_module(nn.RMSNorm(), ROWS),
        ROWS,
        ["Square", "Mean", "AddV2", "Rsqrt", "Mul", "Mul"],
    ),
    # Statistics of groups are repeated for the channels of each.
    "group norm of flax": (
        of_module(nn.GroupNorm(2), IMAGES),
        IMAGES,
        [
            *["Square", "Mean", "Mean", "Square", "Sub", "Relu"],
            *["Reshape"] * 5,
            *["BroadcastTo"] * 2,
            *_NORM,
        ],
    ),
    "batch norm of flax": (
        of_module(nn.BatchNorm(use_running_average=True), IMAGES),
        IMAGES,
        ["Mul", "AddV2"],
    ),
    "one_hot": (lambda i: jax.nn.one_hot(i, 5), INTEGERS, ["OneHot"]),
    "one_hot, vmap": (jax.vmap(lambda i: jax.nn.one_hot(i, 5)), INTEGERS, ["OneHot"]),
    "take": (
        lambda i: jnp.take(ROWS, i, axis=0),
        INDICES,
        [*_TAKE, "Equal", "Reshape", "SelectV2"],
    ),
    "take, clip": (
        lambda i: jnp.take(ROWS, i, axis=1, mode="clip"),
        INDICES,
        ["ClipByValue", "GatherV2"],
    ),
    "x[i]": (lambda i: jnp.asarray(ROWS)[i], INDICES, _TAKE),
    "x[:, i]": (lambda i: jnp.asarray(ROWS)[:, i], INDICES, _TAKE),
    "x[i] of one": (lambda i: jnp.asarray(ROWS)[i], np.int32(-3), _TAKE),
    "x[i % 4]": (lambda i: jnp.asarray(ROWS)[i % 4], INDICES, ["FloorMod", "GatherV2"]),
    "x[argmax]": (lambda x: x[x.argmax(0)], ROWS, ["ArgMax", "GatherV2"]),
    "x[-1] and x[2]": (lambda x: x[np.array([-1, 2])], ROWS, ["GatherV2"]),
}


def ops_of(fun, x, target):
    """How many ops of each type a graph has."""
    converted = lowering.convert(fun, target=target, with_gradient=False)
    graph = tf.function(converted, autograph=False).get_concrete_function(tf.constant(x)).graph
    return collections.Counter(op.type for op in graph.get_operations() if op.type not in _HIDDEN)


def test_table(capsys):
    lines, wrong = [], []
    for name, (fun, x, ops) in TABLE.items():
        found, exact = ops_of(fun, x, "portable"), ops_of(fun, x, "tf")
        exact.pop("PreventGradient", None)
        types = " ".join(f"{n} {op}" if n > 1 else op for op, n in found.items())
        lines.append(f"{name:28}{found.total():4}{exact.total():6}  {types}")
        if found != collections.Counter(ops) or found.total() > exact.total():
            wrong.append(lines[-1])
    print(f"\n{'program':28}portable tf ops\n" + "\n".join(lines))
    assert not wrong, "\n".join(wrong)


def _like(x):
    """An argument of the same dtype with what is hard to get right."""
    if x.dtype == np.float32 and x.ndim == 2:
        return EXTREME[:, : x.shape[1]]
    return np.where(np.isin(x, (0, 1)), np.inf, x).astype(x.dtype) if x.dtype == np.float32 else x


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("compiled", [False, True])
def test_numbers(name, compiled):
    fun, x, _ = TABLE[name]
    run = tf.function(
        lowering.convert(fun, target="portable"), autograph=False, jit_compile=compiled
    )
    for arg in (x, _like(x)):
        expected = np.asarray(jax.jit(fun)(arg))
        actual = np.array(run(arg))
        if "x[" not in name and "take" not in name and expected.dtype == np.float32:
            actual = np.where(np.isnan(expected), expected, actual)
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("divisor", [0, -1, 2, -7, 2**31 - 1, -(2**31)], ids=lambda d: f"by {d}")
def test_integer_division_by_known_numbers(divisor):
    x = np.array([0, 1, -1, 5, -5, 2**31 - 1, -(2**31)], np.int32)
    for fun in (lambda x: x // divisor, lambda x: x % divisor):
        expected = jax.jit(fun)(x)
        actual = tf.function(lowering.convert(fun, target="portable"), autograph=False)(x)
        np.testing.assert_array_equal(actual, expected)


def test_bounds_in_the_wrong_order():
    def clip(x):
        return jnp.clip(x, 1.0, -1.0)

    actual = lowering.convert(clip, target="portable")(IMAGES)
    np.testing.assert_array_equal(actual, clip(IMAGES))


def test_a_slope_that_is_no_literal():
    def leaky(x, slope):
        return jax.nn.leaky_relu(x, slope)

    actual = lowering.convert(leaky, target="portable")(IMAGES, np.float32(0.3))
    np.testing.assert_allclose(actual, leaky(IMAGES, 0.3), rtol=1e-6)


def test_no_graph_chooses_by_device():
    def solve(x):
        return jnp.linalg.solve(x @ x.T + 3 * jnp.eye(3), x[0])

    x = np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32)
    found = ops_of(solve, x, "portable")
    assert not {"DeviceIndex", "Case", "PreventGradient"} & set(found)


def count_nodes(fun, args, target):
    """How many nodes a graph and its functions have; constants, which do not run, do not count."""
    converted = lowering.convert(fun, target=target, with_gradient=False)
    specs = jax.tree.map(lambda x: tf.TensorSpec(np.shape(x), np.asarray(x).dtype), args)
    function = tf.function(converted, autograph=False).get_concrete_function(*specs)
    graph = function.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    return sum(node.op != "Const" for node in nodes)


def assert_no_more_nodes(fun, args):
    natural, exact = (count_nodes(fun, args, target) for target in ("portable", "tf"))
    assert natural <= exact, f"{natural} nodes, {exact} on tf"


@pytest.mark.parametrize("name", models.NAMES)
def test_models_have_no_more_nodes(name):
    model = models.load(name)
    assert_no_more_nodes(model.apply, (model.init(0), model.make_inputs(0)))


def _is_plain(x):
    """Whether an argument is an array of one of numpy's own dtypes."""
    return isinstance(x, np.ndarray | np.generic) and x.dtype.kind != "V"


def _sample():
    """For each primitive and dtype, the harness with the least checksum of its name."""
    groups = collections.defaultdict(list)
    for harness in all_harnesses().values():
        if harness.dtype_name in CORE_DTYPES and all(map(_is_plain, harness.make_args())):
            groups[harness.primitive, harness.dtype_name].append(harness)
    return [min(group, key=lambda h: zlib.crc32(h.name.encode())) for group in groups.values()]


@pytest.mark.parametrize("harness", _sample(), ids=lambda harness: harness.name)
def test_primitives_have_no_more_nodes(harness):
    with jax.enable_x64(True):
        assert_no_more_nodes(harness.fun, harness.make_args())


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_have_no_more_nodes(seed):
    rng = np.random.default_rng(seed)
    instructions = [tuple(map(int, row)) for row in rng.integers(0, 1024, (24, 4))]
    with jax.enable_x64(True):
        assert_no_more_nodes(programs.program(instructions), programs.inputs(seed, 4))
