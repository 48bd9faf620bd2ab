"""Arguments that are no arrays to JAX: the error says what to give instead."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import convert
from lowering.export import entries
from lowering.targets import TF

RAGGED = tf.ragged.constant([[1.0], [2.0, 3.0]])
MASKED = np.ma.array([1.0, 2.0], mask=[True, False])


class Lazy:
    def __array__(self, dtype=None, copy=None):
        return np.ones(3, dtype)


@pytest.mark.parametrize(
    ("value", "kind", "instead"),
    [
        (RAGGED, "RaggedTensor", "to_tensor()"),
        (tf.sparse.from_dense([[1.0], [2.0]]), "SparseTensor", "tf.sparse.to_dense"),
        (tf.IndexedSlices(tf.ones(3), tf.range(3)), "IndexedSlices", "tf.convert_to_tensor"),
        (tf.TensorArray(tf.float32, 3), "TensorArray", "stack()"),
        (tf.data.Dataset.range(3), "RangeDataset", "each of its elements"),
        (MASKED, "MaskedArray", "filled(value)"),
        (Lazy(), "Lazy", "np.asarray"),
        ("relu", "str", "functools.partial"),
        (jnp.tanh, "Function", "functools.partial"),
    ],
)
def test_what_is_no_array(value, kind, instead):
    with pytest.raises(TypeError) as caught:
        convert(lambda x: x["a"])({"a": value})
    message = str(caught.value)
    assert "args[0]['a']" in message and "which is no JAX array" in message
    assert kind in message and instead in message and "float32" not in message


def test_messages_name_the_parameter():
    def predict(params, x):
        return x @ params["w"]

    handle = tf.raw_ops.VarHandleOp(dtype=tf.float32, shape=[3])
    for value in ("relu", RAGGED, tf.constant("relu"), tf.cast(tf.zeros(3), tf.qint8), handle):
        with pytest.raises(TypeError, match=r"argument args\[1\], which is x of predict, has type"):
            convert(predict)({"w": np.ones(3)}, value)
        with pytest.raises(TypeError, match=r"argument kwargs\['x'\] has type"):
            convert(predict)({"w": np.ones(3)}, x=value)
    for weights in (RAGGED, "relu"):
        with pytest.raises(TypeError, match=r"params takes arrays, not .* at params\['w'\]"):
            entries.entry(predict, (np.ones(3),), TF, params={"w": weights})
    with pytest.raises(TypeError, match=r"params\['w'\] has the dtype object"):
        entries.entry(predict, (np.ones(3),), TF, params={"w": np.array([None])})


@pytest.mark.parametrize("value", [RAGGED, MASKED])
def test_what_loses_a_part_is_not_exported(value):
    with pytest.raises(TypeError, match=r"(?s)args takes arrays.*; give its"):
        entries.entry(lambda x: x, (value,), TF)
    with pytest.raises(TypeError, match=r"(?s)params takes arrays.*; give its"):
        entries.entry(lambda p, x: x, (np.ones(3),), TF, params={"w": value})


@pytest.mark.parametrize(
    ("value", "fixed"), [(True, "train=True"), ("a", "train='a'"), ({"n": 3}, "train=...")]
)
def test_python_values_are_fixed_before_an_export(value, fixed):
    def predict(x, train):
        return x if train else -x

    with pytest.raises(TypeError) as caught:
        entries.entry(predict, (np.ones(3), value), TF)
    assert f"functools.partial(predict, {fixed})" in str(caught.value)


class Model:
    def __call__(self, x, train):
        return x if train else -x


@pytest.mark.parametrize(
    "fun", [Model(), Model().__call__, functools.partial(Model()), lambda x, train: x]
)
def test_what_has_no_name_of_its_own_is_called_fun(fun):
    """`functools.partial(Model, ...)` would be another function: a class's."""
    with pytest.raises(TypeError, match=re.escape("export functools.partial(fun, train=True)")):
        entries.entry(fun, (np.ones(3), True), TF)


def test_a_callable_object_that_asks_for_a_value_is_called_fun():
    with pytest.raises(jax.errors.TracerBoolConversionError) as caught:
        convert(Model())(np.ones(3), True)
    assert "functools.partial(fun, train=True) in place of fun" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3, ">f4"), r"dtype >f4, .*in another order, give its astype\('float32'\)"),
        (np.ones(3, np.longdouble), "has the dtype float128, which is none of JAX"),
        (np.zeros(3, [("a", "f4")]), "which is none of JAX"),
        (tf.zeros(3), r"has TensorFlow's EagerTensor; give its numpy\(\)"),
        (tf.TensorSpec(3), "has TensorFlow's TensorSpec; give a jax.ShapeDtypeStruct"),
    ],
)
def test_dtypes_that_jax_lacks_are_not_exported(value, message):
    with pytest.raises(TypeError, match=message):
        entries.entry(lambda x: x, (value,), TF)
    with pytest.raises(TypeError, match=r"params\['w'\]"):
        entries.entry(lambda p, x: x, (np.ones(3),), TF, params={"w": value})


def test_abstract_values_are_specifications():
    made = entries.entry(lambda x: x, (jax.typeof(np.ones(3)),), TF)
    assert made.samples[0].shape == (3,)
    with pytest.raises(TypeError, match="params takes arrays, not ShapedArray"):
        entries.entry(lambda p, x: x, (np.ones(3),), TF, params={"w": jax.typeof(np.ones(3))})
