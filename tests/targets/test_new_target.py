"""A target is added by a folder and an exporter, as the page on the architecture says."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert, targets
from lowering.errors import UnsupportedError
from lowering.export import runtimes
from lowering.export.entries import entry
from lowering.targets import TFLITE, folders
from tests.helpers import ROOT, code_blocks

PAGE = ROOT / "g3doc/architecture.md"
X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


@pytest.fixture
def lite(tmp_path):
    """The target of the page, in a folder elsewhere."""
    folder = tmp_path / "lite"
    folder.mkdir()
    (text,) = code_blocks(PAGE, "json")
    (folder / "target.json").write_text(text)
    yield targets.add(folder)
    for known in (folders._ALL, folders.TARGETS):
        del known["lite"]


def test_its_capabilities(lite):
    assert lite.parent is TFLITE and lite.is_consumer and not lite.has_64_bits
    assert lite.exact_integer_bits == 24 and TFLITE.exact_integer_bits == 64
    assert not lite.has_grouped_convolutions and TFLITE.has_grouped_convolutions
    assert lite.emulates("uint8") and lite.ops == TFLITE.ops and lite.ranks == TFLITE.ranks
    assert targets.resolve(True, "lite") is lite


def test_tables_of_its_own(tmp_path, lite):
    tables = {"ops": {"Sin": ["float32"]}, "refused": {}, "ranks": {"AddV2": 2}}
    (lite.folder / "ops.json").write_text(json.dumps(tables))
    again = targets.add(lite.folder)
    assert again.ops == {"Sin": {"float32"}} and not again.refused
    assert again.max_rank("AddV2") == 2 and again.max_rank("Sub") == TFLITE.max_rank("Sub")


def test_a_program_is_lowered_and_exported_for_it(lite, monkeypatch):
    scope = {}
    exec(next(code for code in code_blocks(PAGE) if "def to_lite" in code), scope)
    with pytest.raises(UnsupportedError, match=r"RUNTIMES runs models of 'lite'"):
        runtimes.run("lite", entry(jnp.sin, (X,), lite))
    monkeypatch.setitem(runtimes.RUNTIMES, "lite", scope["_run_lite"])

    def program(x):
        return {"y": jax.nn.relu(jnp.sort(x, axis=1)) + jnp.sum(x, 0)}

    (actual,) = runtimes.run("lite", entry(program, (X,), lite))["Lite"]
    np.testing.assert_allclose(actual, program(X)["y"], rtol=1e-6)


def test_its_capabilities_decide_what_it_gets(lite):
    images, weights = jnp.ones((1, 5, 5, 4)), jnp.ones((2, 2, 2, 6))

    def convolve(x):
        numbers = ("NHWC", "HWIO", "NHWC")
        return lax.conv_general_dilated(
            x, weights, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=2
        )

    def convolutions(target):
        function = tf.function(convert(convolve, target=target, with_gradient=False))
        graph = function.get_concrete_function(tf.TensorSpec(images.shape)).graph
        return sum(op.type == "Conv2D" for op in graph.get_operations())

    assert (convolutions("tflite"), convolutions("lite")) == (1, 2)


def test_a_capability_that_there_is_not(tmp_path):
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "target.json").write_text('{"parent": "tf", "has_wings": true}')
    with pytest.raises(TypeError, match="has_wings"):
        targets.add(folder)
    assert "other" not in targets.TARGETS
