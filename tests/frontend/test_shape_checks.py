"""Sizes that do not fit their specifications, in every way in which a function can be run."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import ShapeError, convert
from tests.helpers import MODES, in_mode, op_counts


def sums(*xs):
    """A function of arguments of any shapes that depends on them and on their sizes."""
    return [x.sum() for x in xs], [jnp.array(size) for x in xs for size in x.shape]


# Specifications, constraints, a signature, sizes that fit, and sizes that do not with the message.
CASES = {
    "two axes": ("b, b", (), [[None, None]], [(4, 4)], [(4, 5)], r"args\[0\].shape\[1\] = b"),
    "two arguments": (
        ("b, 2", "b"),
        (),
        [[None, 2], [None]],
        [(3, 2), (3,)],
        [(3, 2), (4,)],
        r"shape\[0\] = b has size",
    ),
    "a multiple": ("2*b", (), [[None]], [(6,)], [(5,)], r"2\*b has size.*5.*which no integer b"),
    "zero": ("b", (), [[None]], [(1,)], [(0,)], r"args\[0\].shape\[0\] = b.*at least 1"),
    "below one": ("b + 3", (), [[None]], [(4,)], [(3,)], r"so that b is.*at least 1"),
    "far below one": ("b + 3", (), [[None]], [(4,)], [(0,)], r"so that b is.*-3.*at least 1"),
    "at least": ("b", ["b >= 4"], [[None]], [(4,)], [(3,)], "polymorphic_constraints has 'b >= 4'"),
    "at most": ("b", ["b <= 4"], [[None]], [(4,)], [(5,)], "polymorphic_constraints has 'b <= 4'"),
    "multiple of": (
        "b",
        ["mod(b, 4) == 0"],
        [[None]],
        [(8,)],
        [(9,)],
        r"polymorphic_constraints has 'mod\(b, 4\) == 0'",
    ),
    "an order": ("a, b", ["a >= b"], [[None, None]], [(4, 4)], [(4, 5)], "'a >= b'"),
    "zero permitted": ("b", ["b >= 0"], [[None]], [(1,)], [(0,)], "at least 1"),
    "equal variables": ("a, b", ["a == b"], [[None, None]], [(3, 3)], [(3, 4)], r"shape\[1\] = b"),
    "half": (
        ("a", "b"),
        ["floordiv(b, 2) == a"],
        [[None], [None]],
        [(2,), (5,)],
        [(2,), (6,)],
        r"floordiv\(b, 2\) == a",
    ),
    "a constant": ("b", ["b == 4"], [[None]], [(4,)], [(5,)], r"shape\[0\] has size.*5.*not 4"),
    "a fixed size": (
        "b, 3",
        (),
        [[None, None]],
        [(2, 3)],
        [(2, 4)],
        r"shape\[1\] has size.*4.*not 3",
    ),
    "only fixed sizes": ("2, 3", (), [[None, None]], [(2, 3)], [(3, 3)], r"shape\[0\].*3.*not 2"),
    "an unknown rank": (
        "b, 3",
        (),
        [None],
        [(2, 3)],
        [(2,)],
        r"args\[0\] has.*1.*dimensions?, not 2",
    ),
    "a larger rank": ("b", (), [None], [(2,)], [(2, 3)], r"args\[0\] has.*2.*dimensions, not 1"),
    "a scalar": ("", (), [None], [()], [(1,)], r"args\[0\] has.*1.*dimensions?, not 0"),
    "an expression": ("a + 2*b, a", (), [[None, None]], [(7, 3)], [(6, 3)], "which no integer b"),
    "a sum and a difference": (
        "a + b, a - b",
        (),
        [[None, None]],
        [(7, 3)],
        [(7, 4)],
        "which no integer [ab] gives",
    ),
    "a product": ("a*b, a", (), [[None, None]], [(6, 3)], [(7, 3)], "which no integer b"),
    "no coefficient": (
        "a*b - 2*b, a",
        (),
        [[None, None]],
        [(6, 4)],
        [(0, 2)],
        "so that b may be anything",
    ),
    "a quotient": (
        "a, floordiv(a, 2)",
        (),
        [[None, None]],
        [(5, 2)],
        [(5, 3)],
        r"floordiv\(a, 2\) has size.*3.*not.*2",
    ),
    "a square": ("a, a^2", (), [[None, None]], [(3, 9)], [(3, 6)], r"a\^2 has size"),
    "a maximum": (
        "a, b, max(a, b)",
        (),
        [[None] * 3],
        [(3, 5, 5)],
        [(3, 5, 3)],
        r"max\(.*has size",
    ),
}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request):
    return request.param


def arrays(shapes):
    return [np.ones(shape, np.float32) for shape in shapes]


def function(case, mode, **options):
    specs, constraints, signature, *_ = case
    fun_tf = convert(sums, polymorphic_shapes=specs, polymorphic_constraints=constraints, **options)
    return in_mode(fun_tf, mode, input_signature=[tf.TensorSpec(shape) for shape in signature])


def assert_same(actual, shapes):
    expected = tf.nest.flatten(sums(*arrays(shapes)))
    np.testing.assert_array_equal([float(x) for x in tf.nest.flatten(actual)], expected)


@pytest.mark.parametrize("mode", MODES)
def test_sizes_are_checked(case, mode):
    *_, right, wrong, message = case
    fun_tf = function(case, mode)
    assert_same(fun_tf(*arrays(right)), right)
    kind = ShapeError if mode == "eager" else tf.errors.InvalidArgumentError
    with pytest.raises(kind) as error:
        fun_tf(*arrays(wrong))
    assert_says(error, "" if mode == "compiled" else message)


def assert_says(error, message):
    """TensorFlow writes brackets around the values of an assertion."""
    text = re.sub(r"\] \[", " ", str(error.value)).replace("`", "'").replace(" ,", ",")
    assert re.search(message, text), text


def test_a_function_that_jit_compiles_a_graph(case):
    *_, right, wrong, _ = case
    inner = function(case, "graph")
    outer = tf.function(
        lambda *xs: inner(*xs),
        autograph=False,
        jit_compile=True,
        input_signature=[tf.TensorSpec(shape) for shape in case[2]],
    )
    assert_same(outer(*arrays(right)), right)
    with pytest.raises(tf.errors.InvalidArgumentError):
        outer(*arrays(wrong))


@pytest.mark.parametrize("mode", ["graph", "compiled"])
def test_sizes_that_tensorflow_knows(case, mode):
    """They are checked in Python, when the graph is made."""
    *_, right, wrong, message = case
    fun_tf = convert(sums, polymorphic_shapes=case[0], polymorphic_constraints=case[1])
    fun_tf = in_mode(fun_tf, mode)
    assert_same(fun_tf(*arrays(right)), right)
    with pytest.raises(ShapeError) as error:
        fun_tf(*arrays(wrong))
    assert_says(error, message)


def test_saved_and_loaded(case, tmp_path):
    *_, right, wrong, message = case
    module = tf.Module()
    module.fun = function(case, "graph")
    tf.saved_model.save(module, tmp_path)
    loaded = tf.saved_model.load(tmp_path)
    assert_same(loaded.fun(*map(tf.constant, arrays(right))), right)
    with pytest.raises(tf.errors.InvalidArgumentError) as error:
        loaded.fun(*map(tf.constant, arrays(wrong)))
    assert_says(error, message)


def test_without_checks(case):
    graph = function(case, "graph", check_shapes=False).get_concrete_function().graph
    assert op_counts(graph)["Assert"] == 0
    assert op_counts(graph)["BroadcastTo"] == 0
