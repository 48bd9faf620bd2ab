"""Writes of a block of an array, as caches of language models make them, in TF Lite and ONNX."""

import jax
import numpy as np
import onnx
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


def onnx_ops(fun, args, **options):
    """The kinds of nodes of a verified ONNX model."""
    model = onnx.load_from_string(bytes(export.to_onnx(fun, args, **options)))
    return [node.op_type for node in model.graph.node]


def write_at_two(kept, new, i, j):
    return lax.dynamic_update_slice(kept, new, (0, i, j, 0))


def write_at_index(kept, new, i):
    return kept.at[:, :, i].set(new[:, :, 0])


@pytest.mark.parametrize(
    ("fun", "places"), [(write, [3]), (write, [99]), (write_at_two, [1, 7]), (write_at_index, [-2])]
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_a_write_of_onnx_touches_the_block_alone(fun, places, dtype):
    args = CACHE.astype(dtype), NEW.astype(dtype), *map(np.int32, places)
    ops = onnx_ops(fun, args)
    assert ops.count("ScatterND") == 1
    assert "Concat" not in ops and len(ops) <= 17


def test_a_write_of_onnx_with_a_symbolic_size():
    shapes = {
        "polymorphic_shapes": ["1, 2, n, 3", None, None],
        "polymorphic_constraints": ["n >= 2"],
    }
    assert onnx_ops(write, (CACHE, NEW, np.int32(3)), **shapes).count("ScatterND") == 1


def test_a_slice_of_onnx_takes_the_axis_that_is_cut():
    ops = onnx_ops(lambda x, i: lax.dynamic_slice_in_dim(x, i, 1, axis=2), (CACHE, np.int32(3)))
    assert ops.count("Gather") == 1 and "Slice" not in ops
    ops = onnx_ops(lambda x, i: lax.dynamic_slice_in_dim(x, i, 2, axis=2), (CACHE, np.int32(3)))
    assert ops.count("Slice") == 1 and "Concat" not in ops
