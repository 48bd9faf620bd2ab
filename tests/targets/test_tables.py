"""What consumers take is data, and a graph that needs something else is refused."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering.errors import UnsupportedError
from lowering.targets import CONSUMERS, TARGETS, Target


@pytest.mark.parametrize("consumer", CONSUMERS)
def test_tables(consumer):
    target = TARGETS[consumer]
    table, refused = target.ops, target.refused
    for op in ("AddV2", "Mul", "SelectV2", "GatherV2"):
        assert {"float32", "int32"} <= table[op]
        assert not {"float32", "int32"} & refused.get(op, frozenset())
    assert all(not dtypes & table.get(op, frozenset()) for op, dtypes in refused.items())
    assert json.loads((target.folder / "ops.json").read_text())["versions"]


def test_an_op_that_a_consumer_lacks(monkeypatch):
    monkeypatch.setattr(Target, "lacks", lambda _, op, dtype: (op, dtype) == ("Sin", "float32"))

    def inner(x):
        return jax.jit(lambda x: jnp.sin(x) + 1)(x)

    converted = lowering.convert(inner, target="onnx", with_gradient=False)
    with pytest.raises(UnsupportedError) as error:
        tf.function(converted, autograph=False)(np.ones(3, np.float32))
    assert "sin(f32[3]) at" in str(error.value) and "test_tables.py" in str(error.value)
    assert "it needs Sin of float32, which onnx lacks" in str(error.value)
    lowering.convert(inner, target="portable")(np.ones(3, np.float32))
