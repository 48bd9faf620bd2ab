"""What is read of SavedModels without TensorFlow, against what TensorFlow reads."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import saved_model_pb2

from lowering import export
from lowering.export import saved_model_files, wire

DTYPES = ["float32", "bfloat16", "int32", "uint8", "bool", "complex64"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model with two functions; one has a loop and a branch, and inputs of many dtypes."""

    def first(z, a, b, *rest):
        looped = jax.lax.fori_loop(0, 3, lambda i, x: jnp.sin(x) * i, z)
        return jax.lax.cond(a.sum() > 0, jnp.cos, jnp.tanh, looped), b, rest

    given = [jax.ShapeDtypeStruct((2, 3), dtype) for dtype in DTYPES]
    path = tmp_path_factory.mktemp("saved_model") / "model"
    export.to_saved_model(
        {"first": first, "second": jnp.cumsum},
        {"first": given, "second": (jax.ShapeDtypeStruct((4, 3), "float32"),)},
        path,
        polymorphic_shapes={"first": ["b, _"] + [None] * 5, "second": ["n, _"]},
        verify=False,
    )
    return path


def test_signatures_are_those_that_tensorflow_reads(folder):
    described = export.inspect(folder)
    loaded = tf.saved_model.load(str(folder))
    assert set(described.signatures) == {"first", "second"} == set(loaded.signatures)
    for name, signature in described.signatures.items():
        concrete = loaded.signatures[name]
        _, inputs = concrete.structured_input_signature
        for arrays, specs in (
            (signature.inputs, inputs),
            (signature.outputs, concrete.structured_outputs),
        ):
            expected = {key: (spec.dtype.name, tuple(spec.shape)) for key, spec in specs.items()}
            assert {x.name: (x.dtype, x.shape) for x in arrays} == expected
    assert [x.name for x in described.signatures["first"].inputs][:3] == ["z", "a", "b"]
    assert [x.dtype for x in described.signatures["first"].inputs] == DTYPES


def test_ops_are_those_of_all_functions(folder):
    proto = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes())
    library = proto.meta_graphs[0].graph_def.library.function
    all_ops = collections.Counter(node.op for function in library for node in function.node_def)
    found = export.inspect(folder)
    assert found.ops["Cumsum"] == found.ops["Cos"] == found.ops["Tanh"] == 1
    assert found.ops == {op: all_ops[op] for op in found.ops}
    assert found.metadata["producer"] == f"TensorFlow {tf.__version__}"


def test_dtypes_are_those_of_tensorflow():
    """All that an array can have; references and types of no array are not among them."""
    for name, number in types_pb2.DataType.items():
        if 0 < number < 100 and number in saved_model_files.DTYPES:
            assert saved_model_files.DTYPES[number] == tf.as_dtype(number).name, name
    known = ["float32", "float16", "bfloat16", "int4", "uint64", "float8_e5m2", "string"]
    assert {tf.as_dtype(x).as_datatype_enum for x in known} <= set(saved_model_files.DTYPES)


def test_damaged_files(folder, tmp_path):
    whole = (folder / "saved_model.pb").read_bytes()
    for size in (0, 1, 7, len(whole) // 2, len(whole) - 1):
        (tmp_path / "saved_model.pb").write_bytes(whole[:size])
        with pytest.raises(ValueError, match="cannot be read as SavedModel"):
            export.inspect(tmp_path)


def test_fields_of_messages():
    message = (
        b"\x08\x96\x01" + b"\x12\x02hi" + b"\x1d\0\0\x80\x3f" + b"\x20" + b"\xff" * 9 + b"\x01"
    )
    found = wire.fields(message)
    assert found[1] == [150] and wire.text(found[2]) == "hi" and wire.signed(found[4]) == -1
    assert bytes(found[3][0]) == np.float32(1).tobytes()
    for size in (1, 2, 4, 6, 9, len(message) - 1):
        with pytest.raises(ValueError, match="the file ends within"):
            wire.fields(message[:size])
    with pytest.raises(ValueError, match="has the kind 3"):
        wire.fields(b"\x0b")
