"""TF Lite models as objects: their buffers are where they were, once, and aligned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter
from tensorflow.lite.python import schema_py_generated as schema

from lowering import export
from lowering.export import tflite_converter
from lowering.export.tflite_objects import packed, share_buffers, unpacked

RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(64, 32)).astype(np.float32)


def product(params, x):
    return x @ params


def model_of(*sizes, params=WEIGHTS):
    return export.to_tflite(
        {f"of_{n}": product for n in sizes},
        {f"of_{n}": (np.ones((n, len(WEIGHTS)), np.float32),) for n in sizes},
        params=params,
    )


def places(model):
    """Where the buffers of a model begin, and their bytes."""
    root = schema.Model.GetRootAsModel(model)
    buffers = map(root.Buffers, range(root.BuffersLength()))
    vectors = [(x._tab, x._tab.Offset(4)) for x in buffers if x.DataLength()]
    return [table.Vector(offset) for table, offset in vectors]


def contents(model):
    found = (x.data for x in unpacked(bytes(model)).buffers)
    return [None if x is None else x.tobytes() for x in found]


def test_a_model_is_the_same_after_a_round():
    model = model_of(1, 3)
    again = packed(unpacked(bytes(model)))
    assert contents(again) == contents(model)
    x = RNG.normal(size=(3, 64)).astype(np.float32)
    (found,) = Interpreter(model_content=again).get_signature_runner("of_3")(x=x).values()
    np.testing.assert_allclose(found, x @ WEIGHTS, rtol=1e-5, atol=1e-5)


def test_buffers_begin_where_litert_asks_for_it():
    assert all(place % 16 == 0 for place in places(model_of(1, 3)))


def test_buffers_behind_the_flatbuffer_are_read(monkeypatch):
    """Where the converter puts them; models that are written have them inside."""
    made = []
    convert = tflite_converter._converted
    monkeypatch.setattr(
        tflite_converter, "_converted", lambda *a, **k: made.append(convert(*a, **k)) or made[-1]
    )
    model = model_of(1)
    behind = schema.ModelT.InitFromPackedBuf(made[0])
    assert any(x.offset for x in behind.buffers)
    inside = schema.ModelT.InitFromPackedBuf(model)
    assert not any(x.offset for x in inside.buffers)
    assert len(WEIGHTS.tobytes()) in [len(x.data) for x in inside.buffers if x.data is not None]


def test_weights_of_several_signatures_are_there_once():
    assert len(model_of(1, 2, 5)) < len(model_of(1)) + WEIGHTS.nbytes / 2


def test_equal_weights_are_there_once():
    """Also where a program has them twice; not those that are alike at their beginnings alone."""

    def twice(params, x):
        first, second, other = params
        return jnp.tanh(x @ first) @ second.T + jnp.tanh(x) @ other.T @ other

    other = WEIGHTS.T.copy()
    other[-1, -1] += 1
    args = (np.ones((1, 64), np.float32),)
    params = WEIGHTS, WEIGHTS.copy(), other
    once = export.to_tflite(product, args, params=WEIGHTS)
    assert len(export.to_tflite(twice, args, params=params)) < len(once) + 3.5 * WEIGHTS.nbytes


def test_what_is_written_shares_no_buffer():
    root = unpacked(bytes(model_of(1)))
    graph = root.subgraphs[0]
    constants = [x for x in graph.tensors if root.buffers[x.buffer].data is not None]
    copies = []
    for is_variable in (False, True):
        buffer, tensor = schema.BufferT(), schema.TensorT()
        buffer.data = np.array(root.buffers[constants[0].buffer].data)
        tensor.buffer, tensor.isVariable = len(root.buffers), is_variable
        root.buffers.append(buffer)
        graph.tensors.append(tensor)
        copies.append(tensor)
    share_buffers(root)
    constant, variable = copies
    assert constant.buffer == constants[0].buffer
    assert variable.buffer == len(root.buffers) - 1


@pytest.mark.parametrize("quantize", ["dynamic", "float16", "int8"])
def test_quantized_models_have_their_buffers_inside(quantize):
    params = RNG.normal(size=(64, 32)).astype(np.float32)
    model = export.to_tflite(
        jax.jit(product), (np.ones((1, 64), np.float32),), params=params, quantize=quantize
    )
    root = schema.ModelT.InitFromPackedBuf(model)
    assert not any(x.offset for x in root.buffers)
    assert len(model) < 3 * params.nbytes / 4 + 4096
