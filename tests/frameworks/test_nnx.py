"""Flax NNX: modules that are objects, split into a definition and a state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from tests.frameworks.checks import check

nnx = pytest.importorskip("flax.nnx")

IMAGES = np.random.default_rng(0).normal(size=(2, 12, 12, 3)).astype(np.float32)
WORDS = np.random.default_rng(1).integers(0, 20, (2, 7))


class Classifier(nnx.Module):
    def __init__(self, rngs):
        self.conv = nnx.Conv(3, 8, (3, 3), strides=2, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.head = nnx.Linear(8, 5, rngs=rngs)

    def __call__(self, images):
        x = nnx.relu(self.norm(self.conv(images)))
        x = nnx.avg_pool(x, (2, 2), strides=(2, 2))
        return self.head(self.dropout(x.mean((1, 2))))


class Decoder(nnx.Module):
    def __init__(self, rngs):
        self.embed = nnx.Embed(20, 8, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, 8, decode=False, rngs=rngs)
        self.cell = nnx.RNN(nnx.LSTMCell(8, 6, rngs=rngs))
        self.norm = nnx.LayerNorm(6, rngs=rngs)

    def __call__(self, words):
        x = self.embed(words)
        x = x + self.attention(x, mask=nnx.make_causal_mask(words))
        return self.norm(self.cell(x))


def test_a_model_at_inference():
    model = Classifier(nnx.Rngs(0))
    model.eval()
    definition, params, rest = nnx.split(model, nnx.Param, ...)

    def apply(params, x):
        return nnx.merge(definition, params, rest, copy=True)(x)

    check(apply, params, IMAGES)


def test_a_step_of_training_with_new_statistics():
    model = Classifier(nnx.Rngs(params=0, dropout=1))
    definition, params, rest = nnx.split(model, nnx.Param, ...)

    def loss(params, x):
        model = nnx.merge(definition, params, rest, copy=True)
        return (model(x) ** 2).mean(), nnx.state(model, nnx.BatchStat)

    def step(params, x):
        (value, statistics), gradient = jax.value_and_grad(loss, has_aux=True)(params, x)
        return value, statistics, jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    check(step, params, IMAGES)


def test_attention_and_recurrence():
    definition, params, rest = nnx.split(Decoder(nnx.Rngs(0)), nnx.Param, ...)

    def apply(params, words):
        return nnx.merge(definition, params, rest, copy=True)(words)

    check(apply, params, WORDS)


def test_transformations_of_nnx():
    """`nnx.scan` over stacked layers, `nnx.vmap` and `nnx.jit`."""

    @nnx.vmap(in_axes=0)
    def create(key):
        return nnx.Linear(4, 4, rngs=nnx.Rngs(key))

    layers = create(jax.random.split(jax.random.key(0), 3))
    definition, params = nnx.split(layers)

    @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
    def forward(x, layer):
        return jnp.tanh(layer(x))

    @nnx.jit
    def apply(params, x):
        return forward(x, nnx.merge(definition, params))

    check(apply, params, np.ones((2, 4), np.float32))


def test_an_export_warns_of_layers_in_training_mode(recwarn):
    model = Classifier(nnx.Rngs(0))
    with pytest.warns(UserWarning, match=r"module\.eval\(\) ends the training mode") as caught:
        export.to_onnx(model, (IMAGES,), verify=False)
    (text,) = [str(w.message) for w in caught if "training mode" in str(w.message)]
    named, _, _ = text.removeprefix("Classifier has ").partition(" in training mode")
    assert sorted(named.split(", ")) == ["BatchNorm", "Dropout"]
    model.eval()
    recwarn.clear()
    export.to_onnx(model, (IMAGES,), verify=False)
    assert not [w for w in recwarn if "training mode" in str(w.message)]


class Table(nnx.Module):
    def __init__(self):
        self.table = nnx.Variable(jnp.arange(20) * 3)

    def __call__(self, words):
        return self.table[...][words]


class Doubling(nnx.Module):
    def __call__(self, images):
        return 2 * images


@pytest.mark.parametrize(
    ("model", "x"), [(Table(), WORDS.astype(np.int32)), (Doubling(), IMAGES)], ids=["table", "none"]
)
def test_modules_without_parameters_of_floats(model, x, tmp_path):
    """Integers of a module are constants of the model, as a size may depend on them."""
    report = export.to_saved_model(model, (x,), tmp_path / "model")
    assert [len(report.inputs), len(report.outputs)] == [1, 1]
    assert "ReadVariableOp" not in report.ops
    np.testing.assert_array_equal(export.load(tmp_path / "model")(x), model(x))
