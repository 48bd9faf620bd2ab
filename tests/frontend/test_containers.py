"""The containers that TensorFlow wraps around those of a module, wherever they turn up."""

import collections
import copy
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import convert
from tests.helpers import assert_same

Point = collections.namedtuple("Point", ["x", "y"])


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Box:
    content: object


# What is assigned to an attribute. Leaves are numbers.
VALUES = {
    "list": [1.0, [2.0, (3.0,)]],
    "tuple": (1.0, [2.0]),
    "empty list": [],
    "dictionary": {"a": {"b": 1.0}, "c": [2.0, {"d": 3.0}]},
    "named tuple": Point(1.0, [2.0, Point(3.0, 4.0)]),
    "ordered dictionary": collections.OrderedDict(b=1.0, a=[2.0]),
    "default dictionary": collections.defaultdict(list, {"a": [1.0, {"b": 2.0}]}),
    "custom": Box([1.0, {"a": 2.0}]),
    "list of custom": [Box({"a": [1.0]}), Box((2.0,))],
    "None": [None, 1.0],
}


class Module(tf.Module):
    def __init__(self, value, inner=None):
        super().__init__()
        # TensorFlow writes its wrappers into the list that it is given, too.
        self.value = copy.copy(value) if inner else copy.deepcopy(value)
        self.inner = inner

    def doubled(self, x):
        return jax.tree.map(lambda y: 2 * y * x, self.value)

    def doubled_inside(self, x):
        return self.inner.doubled(x)


@pytest.fixture(params=VALUES)
def value(request):
    return VALUES[request.param]


MODULE = Module(VALUES["dictionary"])


def of_a_global_name(x):
    return helper(MODULE.value, x)


def helper(tree, x):
    return jax.tree.map(lambda y: 2 * y * x, tree)


def expected(value):
    return jax.tree.map(lambda y: np.float32(2 * y * 5), value)


def test_arguments(value):
    module = Module(value)
    fun_tf = convert(lambda tree, x: jax.tree.map(lambda y: 2 * y * x, tree))
    assert_same(fun_tf(module.value, 5.0), expected(value))
    assert_same(fun_tf({"in": [module.value]}, 5.0), {"in": [expected(value)]})
    assert_same(fun_tf(Box(module.value), 5.0), Box(expected(value)))
    keyword = convert(lambda *, tree: tree)(tree=module.value)
    assert jax.tree.structure(keyword) == jax.tree.structure(value)


def test_arguments_of_a_graph(value):
    module = Module(value)
    fun_tf = convert(lambda tree, x: jax.tree.map(lambda y: 2 * y * x, tree))
    leaves = tf.function(lambda x: jax.tree.leaves(fun_tf(module.value, x)), autograph=False)(5.0)
    np.testing.assert_array_equal(leaves, jax.tree.leaves(expected(value)))


def test_variables():
    params = Module({"w": [tf.Variable(2.0), tf.Variable(3.0)], "b": (tf.Variable(1.0),)}).value
    fun = convert(lambda p, x: p["w"][0] * x + p["w"][1] + p["b"][0])
    assert_same(fun(params, 5.0), np.float32(14))


def test_results(value):
    module = Module(value)
    actual = convert(lambda x: (x, {"a": module.value}))(5.0)
    wanted = jax.tree.map(np.float32, (5.0, {"a": value}))
    assert_same(actual, wanted)


def test_specifications():
    module = Module(["b", {"x": "b, _"}])
    fun_tf = convert(lambda x, tree: x + tree["x"].sum(1), polymorphic_shapes=module.value)
    with pytest.raises(lowering.ShapeError):
        fun_tf(np.ones(3, np.float32), {"x": np.ones((4, 2), np.float32)})


# Functions that reach a module other than through an argument.
REACHES = {
    "method": lambda module: module.doubled,
    "closure": lambda module: lambda x: helper(module.value, x),
    "closure of a container": lambda module: (lambda tree: lambda x: helper(tree, x))(module.value),
    "inner function": lambda module: (lambda inner: lambda x: inner(x),)[0](
        lambda x: helper(module.value, x)
    ),
    "partial": lambda module: functools.partial(helper, module.value),
    "partial keyword": lambda module: functools.partial(helper, tree=module.value),
    "default": lambda module: lambda x, tree=module.value: helper(tree, x),
    "keyword default": lambda module: lambda x, *, tree=module.value: helper(tree, x),
    "inner module": lambda module: Module(0.0, module).doubled_inside,
    "list of modules": lambda module: (lambda outer: lambda x: outer.value[0].doubled(x))(
        Module([module], inner=True)
    ),
    "local function": lambda module: lambda x: (lambda: helper(module.value, x))(),
}


@pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
def test_functions_that_reach_a_module(value, reach):
    module = Module(value)
    fun = reach(module)
    args = {"x": 5.0}
    before = module.value
    assert_same(convert(fun)(**args), expected(value))
    assert module.value is before and type(module) is Module


def test_a_global_name():
    assert_same(convert(of_a_global_name)(5.0), expected(VALUES["dictionary"]))


def test_gradient_of_a_function_that_reaches_a_module():
    module = Module({"w": [3.0, 4.0]})
    fun_tf, x = convert(lambda x: sum(jax.tree.leaves(module.doubled(x)))), tf.constant(5.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = fun_tf(x)
    assert tape.gradient(y, x) == 14


def test_scans_and_jit_inside():
    module = Module([np.float32([1, 2, 3]), {"a": np.float32([4, 5, 6])}])

    @jax.jit
    def total(tree):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))

    def fun(x):
        _, ys = jax.lax.scan(lambda c, t: (c, t[0] * t[1]["a"] * x), 0, module.value)
        return ys, total(module.value)

    assert_same(convert(fun)(2.0), (np.float32([8, 20, 36]), np.float32(21)))


def test_state_is_seen_and_kept():
    """The module is the user's own: what is assigned to an attribute stays."""

    class Counting(tf.Module):
        def __init__(self):
            super().__init__()
            self.scales = [2.0]
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            assert isinstance(self, Counting)
            return jax.tree.map(lambda scale: scale * x, self.scales)

    module = Counting()
    fun_tf = convert(module.__call__)
    assert_same(fun_tf(5.0), [np.float32(10)])
    assert module.calls == 1
    assert type(module.scales) is not list


def test_functions_without_wrappers_are_called_themselves():
    seen = []

    def fun(x):
        seen.append(sum.__closure__)
        return x

    def sum(x):
        return fun(x)

    assert_same(convert(sum)(2.0), np.float32(2))
    assert seen[0] is sum.__closure__


def test_recursive_functions():
    module = Module([1.0, 2.0])

    def fun(x, depth=3):
        return fun(x, depth - 1) if depth else helper(module.value, x)

    assert_same(convert(lambda x: fun(x))(5.0), expected([1.0, 2.0]))


def test_what_is_out_of_reach():
    """Objects that are no modules are not looked into: JAX's error is explained."""

    class Holder:
        def __init__(self, module):
            self.module = module

    holder = Holder(Module([np.float32(1), np.float32(2)]))
    with pytest.raises(lowering.LoweringError, match="ListWrapper, which TensorFlow"):
        convert(lambda x: jax.tree.map(jnp.sin, holder.module.value))(1.0)


def test_nothing_is_registered():
    module = Module([1.0])
    convert(lambda x: helper(module.value, x))(1.0)
    assert jax.tree.leaves(module.value) == [module.value]
    assert jax.tree.structure(module.value) == jax.tree.structure(0)


def test_objects_that_are_no_pytrees_may_be_enclosed():
    """A dictionary whose keys have no order, an unset variable, a class, a variable written to."""
    module, table, calls = Module([1.0, 2.0]), {int: 1, str: 2}, 0

    def fun(x):
        nonlocal calls
        calls += table[int]
        if calls > 5:
            return unset
        return helper(module.value, x)

    assert_same(convert(fun)(5.0), expected([1.0, 2.0]))
    assert calls == 1
    unset = None


def test_functions_that_call_each_other():
    module = Module([1.0, 2.0])

    def even(x, n):
        return odd(x, n - 1) if n else helper(module.value, x)

    def odd(x, n):
        return even(x, n - 1)

    assert_same(convert(lambda x: even(x, 4))(5.0), expected([1.0, 2.0]))
