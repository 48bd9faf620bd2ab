"""The names of ops: those of arguments, results and scopes, whatever people call them."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from tests.helpers import graph_of

X = tf.TensorSpec([2], tf.float32)


def names_in(graph):
    return [op.name for op in graph.get_operations()]


def graph_in(fun_tf, *specs, **kwspecs):
    return tf.function(fun_tf, autograph=False).get_concrete_function(*specs, **kwspecs).graph


@pytest.mark.parametrize("with_gradient", [True, False])
def test_arguments_and_results(with_gradient):
    def fun(params, x, *more, scale):
        y = x * params["dense"]["kernel"] + params["dense"]["bias"][1]
        return {"loss": (y * scale).sum() + more[0].sum(), "aux": (y, [x])}

    params = {"dense": {"kernel": X, "bias": [X, X]}}
    graph = graph_in(convert(fun, with_gradient=with_gradient), params, X, X, scale=X)
    names = names_in(graph)
    for name in (
        *("params/dense/kernel", "params/dense/bias/0", "params/dense/bias/1", "x", "args/2"),
        *("scale", "result/loss", "result/aux/0", "result/aux/1/0"),
    ):
        assert name in names, name


def test_no_op_is_added_for_an_argument_that_has_its_name():
    graph = graph_of(lambda x: x * 2, X)
    ops = [(op.name, op.type) for op in graph.get_operations() if op.type != "Const"]
    # The last one is TensorFlow's.
    assert ops == [
        ("x", "Placeholder"),
        ("Mul", "Mul"),
        ("result", "PreventGradient"),
        ("Identity", "Identity"),
    ]


def test_gradients_add_no_names():
    fun_tf = convert(lambda params, x: (x * params["w"]).sum())

    def gradient(params, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun_tf(params, x)
        return tape.gradient(y, x)

    names = names_in(graph_in(gradient, {"w": X}, X))
    assert sum("params/w" in name for name in names) == 1
    assert sum(name.startswith("result") for name in names) == 1


NAMES = (
    *("_x", "_a/_b", "a b", "ü", "a/b", "/a", "a/", "//", " ", "", "x" * 5000, "-q", "a\\b", "1"),
    *("(x)", "\n", "vmap(_f)", "💥", "a>b", ".x", "tf", "名前", "a:0", "^a", "a_", "__", "None"),
)


@pytest.mark.parametrize("outer", ["", "outer", "a/b"])
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_any_name(name, outer):
    def fun(tree):
        with jax.named_scope(name):
            return {name: jnp.sin(tree[name]) + 1, "other": jnp.ones(3) * jnp.cos(tree[name])[0]}

    def fun_tf(x):
        with tf.name_scope(outer):
            return convert(fun)({name: x})

    function = tf.function(fun_tf, autograph=False, input_signature=[X])
    x = np.float32([1, 2])
    (result,) = (value for key, value in function(x).items() if key != "other")
    np.testing.assert_allclose(result, np.sin(x) + 1, rtol=1e-6)
    for op in function.get_concrete_function().graph.get_operations():
        if op.type not in ("Placeholder", "Identity"):
            assert op.name.startswith(outer)
        assert re.fullmatch(r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*", op.name) and len(op.name) < 1000


@pytest.mark.parametrize("name", ["_x", "", "ü", "x" * 5000])
def test_any_name_saved(name, tmp_path):
    module = tf.Module()
    fun_tf = convert(lambda tree: {name: jax.named_scope(name)(jnp.sin)(tree[name])})
    module.fun = tf.function(
        lambda x: fun_tf({name: x})[name], autograph=False, input_signature=[X]
    )
    tf.saved_model.save(module, tmp_path)
    x = tf.constant([1.0, 2.0])
    np.testing.assert_allclose(tf.saved_model.load(tmp_path).fun(x), np.sin(x), rtol=1e-6)


def test_a_private_class_of_flax():
    nn = pytest.importorskip("flax.linen")

    class _Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(3)(x)

    net = _Net()
    params = net.init(jax.random.key(0), np.ones((1, 2), np.float32))
    names = names_in(graph_of(lambda x: net.apply(params, x), np.ones((1, 2), np.float32)))
    assert any(name.startswith("Net/Dense_0/") for name in names)


def test_constants_are_made_in_the_scope_of_the_caller():
    fun_tf = convert(lambda x: x + np.arange(2, dtype=np.float32))

    def twice(x):
        with tf.name_scope("first"):
            y = fun_tf(x)
        with tf.name_scope("second"):
            return fun_tf(y), fun_tf(x)

    names = [op.name for op in graph_in(twice, X).get_operations() if op.type == "Const"]
    assert names == ["first/Const", "second/Const"]


def test_results_of_a_class_that_takes_arrays_only():
    class Box:
        def __init__(self, value):
            self.value, self.dtype = value, value.dtype

    jax.tree_util.register_pytree_node(Box, lambda b: ((b.value,), None), lambda _, c: Box(*c))
    fun_tf = convert(lambda x: {"box": Box(x), "other": x})
    graph = graph_in(lambda x: jax.tree.leaves(fun_tf(x)), X)
    assert {"result/0", "result/1"} <= set(names_in(graph))
