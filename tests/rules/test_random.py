"""Random bits cost few nodes."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from tests import helpers
from tests.helpers import op_counts, op_types

KEY_DATA = np.array([3, 4], np.uint32)


def graph_of(fun, *, compiled=False):
    """The graph of a function of a key."""

    def of_key_data(data):
        return fun(jax.random.wrap_key_data(data))

    return helpers.graph_of(of_key_data, KEY_DATA, compiled=compiled, target="tf")


DRAWS = {
    "bits": jax.random.bits,
    "uniform": jax.random.uniform,
    "normal": jax.random.normal,
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.3, shape),
    "split": lambda key, shape: jax.random.key_data(jax.random.split(key)),
    "fold_in": lambda key, shape: jax.random.key_data(jax.random.fold_in(key, len(shape))),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("shape", [(5,), (256, 256)])
@pytest.mark.parametrize("draw", DRAWS)
def test_calls_cost_few_nodes(draw, shape, compiled):
    def nodes(times):
        def fun(key):
            return [DRAWS[draw](key, (*shape, 1 + i)) for i in range(times)]

        return op_counts(graph_of(fun, compiled=compiled)).total()

    once, twice, thrice = nodes(1), nodes(2), nodes(3)
    assert once <= 250
    assert max(twice - once, thrice - twice) <= 10


@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_share_a_function(compiled):
    """Random numbers of several shapes, small and large, of several distributions."""

    def fun(data):
        keys = jax.random.split(jax.random.wrap_key_data(data), 3)
        shapes = [(3,), (2, 5), (70, 60), (1, 1), (0, 3), (4097,)]
        return [
            draw(keys[i], shape, *args)
            for i, (draw, *args) in enumerate(
                [(jax.random.normal,), (jax.random.uniform, "float16"), (jax.random.bits, "uint8")]
            )
            for shape in shapes
        ]

    converted = tf.function(
        lowering.convert(fun, target="tf"), autograph=False, jit_compile=compiled
    )
    for actual, expected in zip(converted(KEY_DATA), jax.jit(fun)(KEY_DATA), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_shapes_stay_known():
    graph_def = graph_of(lambda key: jax.random.normal(key, (3, 100, 200))).as_graph_def()
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(graph_def, name="")
    output = next(op for op in graph.get_operations() if op.name == "Identity")
    assert output.outputs[0].shape == (3, 100, 200)


def test_known_keys_are_folded():
    graph = graph_of(lambda key: jax.random.normal(jax.random.key(0), (3,)))
    assert "PartitionedCall" not in op_types(graph)


@pytest.mark.parametrize("compiled", [False, True])
def test_bits_of_a_symbolic_shape(compiled):
    def fun(data, x):
        return jax.random.uniform(jax.random.wrap_key_data(data), x.shape)

    converted = tf.function(
        lowering.convert(fun, target="tf", polymorphic_shapes=[None, "(b - 1, 3)"]),
        autograph=False,
        jit_compile=compiled,
        input_signature=[tf.TensorSpec((2,), tf.uint32), tf.TensorSpec((None, 3), tf.float32)],
    )
    for size in (0, 1, 5):
        x = np.zeros((size, 3), np.float32)
        np.testing.assert_array_equal(converted(KEY_DATA, x), fun(KEY_DATA, x))


def test_not_partitionable_bits_are_not_mistaken_for_others():
    def fun(data):
        return jax.random.bits(jax.random.wrap_key_data(data), (5,))

    converted = lowering.convert(fun, target="tf")
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(converted(KEY_DATA), fun(KEY_DATA))
        old = fun(KEY_DATA)
    with jax.threefry_partitionable(True):
        np.testing.assert_array_equal(converted(KEY_DATA), fun(KEY_DATA))
        assert not np.array_equal(old, fun(KEY_DATA))


@pytest.mark.parametrize("target", ["tf", "xla", "portable"])
def test_draws_of_known_bounds_differ_from_each_other(target):
    """They are neither made when the program is lowered, nor once for a loop, nor merged."""

    def draw():
        return lax.rng_uniform(np.float32(0), np.float32(1), (2,))

    def fun():
        steps = lax.scan(lambda carry, _: (carry, jax.jit(draw)() + carry), 0.0, length=3)[1]
        return draw(), draw(), *steps

    converted = tf.function(lowering.convert(fun, target=target), autograph=False)
    found = {x.numpy().tobytes() for _ in range(2) for x in converted()}
    assert len(found) == 10
