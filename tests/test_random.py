"""Random bits cost few nodes, and keys move like any other array."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import avals

WORDS = np.array([3, 4], np.uint32)


def graph_of(fun, *, compiled=False):
    converted = lowering.convert(
        lambda words: fun(jax.random.wrap_key_data(words)), target="tf", with_gradient=False
    )
    function = tf.function(converted, autograph=False, jit_compile=compiled)
    return function.get_concrete_function(tf.TensorSpec((2,), tf.uint32)).graph.as_graph_def()


def number_of_nodes(graph_def) -> int:
    return len(graph_def.node) + sum(len(f.node_def) for f in graph_def.library.function)


def functions(graph_def) -> list[str]:
    return [f.signature.name for f in graph_def.library.function]


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

        return number_of_nodes(graph_of(fun, compiled=compiled))

    once, twice, thrice = nodes(1), nodes(2), nodes(3)
    assert once <= 250
    assert max(twice - once, thrice - twice) <= 10


@pytest.mark.parametrize("compiled", [False, True])
def test_shapes_share_a_function(compiled):
    """Random numbers of several shapes, small and large, of several distributions."""

    def fun(words):
        keys = jax.random.split(jax.random.wrap_key_data(words), 3)
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
    for actual, expected in zip(converted(WORDS), jax.jit(fun)(WORDS), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
def test_threefry_is_one_function(compiled):
    def fun(key):
        first, second = jax.random.split(key)
        return jax.random.normal(first, (3,)), jax.random.uniform(second, (100, 200))

    names = functions(graph_of(fun, compiled=compiled))
    assert sum("four_rounds_by_shifts" in name for name in names) == 1
    assert sum("_by_floats" in name for name in names) == (0 if compiled else 2)


def test_shapes_stay_known():
    graph_def = graph_of(lambda key: jax.random.normal(key, (3, 100, 200)))
    with tf.Graph().as_default() as graph:
        tf.graph_util.import_graph_def(graph_def, name="")
    output = next(op for op in graph.get_operations() if op.name == "Identity")
    assert output.outputs[0].shape == (3, 100, 200)


def test_known_keys_are_folded():
    counts = [
        node.op for node in graph_of(lambda key: jax.random.normal(jax.random.key(0), (3,))).node
    ]
    assert "PartitionedCall" not in counts


def test_sizes_around_the_limit_of_kernels():
    for size in (4095, 4096, 4097):
        fun = lambda words, size=size: jax.random.bits(  # noqa: E731
            jax.random.wrap_key_data(words), (size,)
        )
        converted = lowering.convert(fun, target="tf")
        np.testing.assert_array_equal(tf.function(converted, autograph=False)(WORDS), fun(WORDS))
        np.testing.assert_array_equal(converted(WORDS), fun(WORDS))


@pytest.mark.parametrize("compiled", [False, True])
def test_bits_of_a_symbolic_shape(compiled):
    def fun(words, x):
        return jax.random.uniform(jax.random.wrap_key_data(words), x.shape)

    converted = tf.function(
        lowering.convert(fun, target="tf", polymorphic_shapes=[None, "(b, 3)"]),
        autograph=False,
        jit_compile=compiled,
        input_signature=[tf.TensorSpec((2,), tf.uint32), tf.TensorSpec((None, 3), tf.float32)],
    )
    for size in (0, 1, 5):
        x = np.zeros((size, 3), np.float32)
        np.testing.assert_array_equal(converted(WORDS, x), fun(WORDS, x))


def test_typed_keys_are_arguments():
    key = jax.random.key(7)
    (actual,) = lowering.convert(lambda key: (jax.random.split(key, 3),), target="tf")(key)
    np.testing.assert_array_equal(actual, jax.random.key_data(jax.random.split(key, 3)))


def test_a_moved_key_costs_one_op():
    def fun(words):
        pairs = jax.random.wrap_key_data(words)
        return jax.random.key_data(jnp.concatenate([pairs[1:], pairs[:1]]))

    converted = tf.function(
        lowering.convert(fun, target="tf", with_gradient=False), autograph=False
    )
    graph = converted.get_concrete_function(tf.TensorSpec((3, 2), tf.uint32)).graph
    assert sum(op.type == "ConcatV2" for op in graph.get_operations()) == 1


def test_not_partitionable_bits_are_not_mistaken_for_others():
    def fun(words):
        return jax.random.bits(jax.random.wrap_key_data(words), (5,))

    converted = lowering.convert(fun, target="tf")
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(converted(WORDS), fun(WORDS))
        old = fun(WORDS)
    with jax.threefry_partitionable(True):
        np.testing.assert_array_equal(converted(WORDS), fun(WORDS))
        assert not np.array_equal(old, fun(WORDS))


def test_physical_shapes():
    aval = jax.typeof(jax.random.split(jax.random.key(0, impl="rbg"), (2, 3)))
    assert avals.physical_shape(aval) == (2, 3, 4)
    assert avals.physical_aval(aval).dtype == np.uint32
