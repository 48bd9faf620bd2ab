"""Nothing runs before sizes are checked, wherever a graph ends up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from lowering import convert
from tests.helpers import op_counts

SPECS = [tf.TensorSpec([None, None], tf.float32)]
RIGHT, WRONG = np.ones((2, 2), np.float32), np.ones((2, 3), np.float32)

# Functions that depend on the argument, on its size alone, and on nothing.
FUNCTIONS = {
    "argument": lambda x: (x * 2).sum(),
    "size": lambda x: jnp.arange(x.shape[0]).sum(),
    "nothing": lambda x: jnp.float32(3),
}


@pytest.fixture(params=FUNCTIONS.values(), ids=FUNCTIONS)
def square(request):
    """The conversion of a function of a square matrix, as a function of TensorFlow."""
    fun_tf = convert(request.param, polymorphic_shapes="b, b")
    return tf.function(fun_tf, autograph=False, input_signature=SPECS)


def assert_checked(fun_tf):
    fun_tf(tf.constant(RIGHT))
    with pytest.raises(tf.errors.InvalidArgumentError, match="assertion failed"):
        fun_tf(tf.constant(WRONG))


def test_a_branch(square):
    def branch(x):
        return tf.cond(tf.size(x) > 1, lambda: tf.cast(square(x), tf.int32), lambda: 0)

    assert_checked(tf.function(branch, autograph=False, input_signature=SPECS))


def test_a_loop(square):
    def loop(x):
        def body(i, total):
            return i + 1, total + tf.cast(square(x), tf.int32)

        return tf.while_loop(lambda i, _: i < 3, body, [0, 0])[1]

    assert_checked(tf.function(loop, autograph=False, input_signature=SPECS))


def test_a_dataset(square):
    def elements(x):
        source = tf.data.Dataset.from_generator(
            lambda: iter([x.numpy()]), output_signature=SPECS[0]
        )
        return list(source.map(square))

    assert_checked(elements)


def test_signatures_of_a_saved_model(square, tmp_path):
    module = tf.Module()
    module.fun = square
    tf.saved_model.save(module, tmp_path)
    signature = tf.saved_model.load(tmp_path).signatures["serving_default"]
    assert_checked(lambda x: signature(x=x) if "x" in keywords(signature) else signature(x))


def keywords(signature):
    return signature.structured_input_signature[1]


def test_a_frozen_graph(square):
    frozen = convert_variables_to_constants_v2(square.get_concrete_function())
    assert_checked(frozen)
    with tf.Graph().as_default():
        tf.import_graph_def(frozen.graph.as_graph_def(), name="")
        with tf.compat.v1.Session() as session:
            fetched, fed = frozen.outputs[0].name, frozen.inputs[0].name
            session.run(fetched, {fed: RIGHT})
            with pytest.raises(tf.errors.InvalidArgumentError):
                session.run(fetched, {fed: WRONG})


def test_effects_do_not_happen():
    happened = []

    def fun(x):
        jax.debug.callback(lambda: happened.append("without an operand"))
        jax.debug.callback(lambda _: happened.append("with an operand"), x.sum())
        return x

    fun_tf = convert(fun, polymorphic_shapes="b, b")
    fun_tf = tf.function(fun_tf, autograph=False, input_signature=SPECS)
    fun_tf(tf.constant(RIGHT))
    assert len(happened) == 2
    for _ in range(10):
        with pytest.raises(tf.errors.InvalidArgumentError):
            fun_tf(tf.constant(WRONG))
    assert len(happened) == 2


def test_the_gradient_of_a_saved_model(tmp_path):
    module = tf.Module()
    module.fun = tf.function(
        convert(lambda x: (x * x).sum(), polymorphic_shapes="b, b"),
        autograph=False,
        input_signature=SPECS,
    )
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded.fun(x)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(gradient(tf.constant(RIGHT)), 2 * RIGHT)
    assert_checked(gradient)


def test_graphs_with_known_sizes_have_no_ops_that_check():
    for spec, options in ([2, 2], {}), ([2, 2], {"polymorphic_shapes": "b, b"}):
        fun_tf = tf.function(convert(lambda x: x.sum(), **options), autograph=False)
        graph = fun_tf.get_concrete_function(tf.TensorSpec(spec, tf.float32)).graph
        counts = op_counts(graph)
        assert not {"Assert", "BroadcastTo", "Shape", "StridedSlice"} & counts.keys()
