"""Writes of a block of an array, as caches of language models make them, in TF Lite."""

import jax
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering import export
from tools.bench_exports import count_ops

CACHE = np.arange(48, dtype=np.float32).reshape(1, 2, 8, 3)
NEW = -np.ones((1, 2, 2, 3), np.float32)


def write(kept, new, position):
    return lax.dynamic_update_slice_in_dim(kept, new, position, axis=2)


def write_in_loop(kept, new, position):
    return lax.fori_loop(0, 3, lambda i, x: write(x, new + i, position + i), kept)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_write_is_one_op(dtype):
    args = CACHE.astype(dtype), NEW.astype(dtype), np.int32(3)
    ops = count_ops(export.to_tflite(write, args))
    assert ops["DYNAMIC_UPDATE_SLICE"] == 1
    assert not ops["SELECT_V2"] + ops["GATHER"]


def test_writes_in_a_loop():
    ops = count_ops(export.to_tflite(write_in_loop, (CACHE, NEW, np.int32(1))))
    assert ops["DYNAMIC_UPDATE_SLICE"]
    assert not ops["SELECT_V2"]


@pytest.mark.parametrize("compiled", [False, True])
def test_tensorflow_runs_the_graph(compiled):
    converted = lowering.convert(write, target="tflite")
    function = tf.function(converted, jit_compile=compiled, autograph=False)
    expected = jax.jit(write)(CACHE, NEW, 7)
    np.testing.assert_array_equal(function(CACHE, NEW, tf.constant(7)), expected)


def test_other_converters_take_the_graph():
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in (CACHE, NEW)]
    function = tf.function(lowering.convert(write, target="tflite"), autograph=False)
    concrete = function.get_concrete_function(*specs, tf.TensorSpec((), tf.int32))
    model = tf.lite.TFLiteConverter.from_concrete_functions([concrete], tf.Module()).convert()
    assert count_ops(model)["SELECT_V2"]
