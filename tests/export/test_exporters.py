"""Exported models compute in their real runtimes what JAX computes."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from lowering import export


class Classifier(nn.Module):
    """A small network with the layers that most have."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Conv(8, (3, 3))(x))
        x = nn.max_pool(x, (2, 2), (2, 2))
        x = nn.gelu(nn.Conv(8, (3, 3), strides=2)(x))
        x = nn.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
        x = nn.LayerNorm()(nn.Dense(16)(x))
        return {"probabilities": nn.softmax(nn.Dense(10)(x)), "class": jnp.argmax(x, -1)}


IMAGES = jax.ShapeDtypeStruct((2, 16, 16, 1), "float32")


@pytest.fixture(scope="module")
def params():
    return Classifier().init(jax.random.key(0), jnp.ones(IMAGES.shape))


def classify(params, images):
    return Classifier().apply(params, images)


@pytest.fixture(params=["saved_model", "tflite", "onnx", "tfjs"])
def export_to(request, tmp_path):
    """Exports to one of the formats, and verifies the result."""

    def run(fun, args, **options):
        if request.param == "tflite":
            return export.to_tflite(fun, args, **options)
        if request.param == "onnx":
            return export.to_onnx(fun, args, **options)
        write = export.to_saved_model if request.param == "saved_model" else export.to_tfjs
        write(fun, args, tmp_path / "model", **options)
        assert any((tmp_path / "model").iterdir())
        return None

    run.tmp_path = tmp_path
    return run


def test_a_flax_model(export_to, params):
    export_to(classify, (IMAGES,), params=params)


def test_a_batch_of_any_size(export_to, params):
    export_to(classify, (IMAGES,), params=params, polymorphic_shapes=["b, ..."])


def test_many_results_and_arguments_keep_their_order(export_to):
    def many(tree, y):
        return [tree["a"] * i + y[0] for i in range(12)] + [y[1], tree["b"] > 0]

    a, b, c = (np.arange(3, dtype=np.float32) + i for i in range(3))
    export_to(many, ({"b": b, "a": a}, (c, np.arange(4, dtype=np.int32))))


def test_loops_and_branches(export_to):
    def fun(x, n):
        y = jax.lax.fori_loop(0, 4, lambda i, y: y * 0.5 + i, x)
        z, _ = jax.lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] + 1), (x, n))
        return jax.lax.cond(n > 1, lambda: y, lambda: z)

    export_to(fun, (np.arange(3, dtype=np.float32), np.int32(2)))


def test_names_are_given(tmp_path):
    model = export.to_onnx(
        lambda x: x + 1, (IMAGES,), input_names=["image"], output_names=["brighter"]
    )
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_model_from_string(model).graph
    assert [x.name for x in graph.input] == ["image"]
    assert [x.name for x in graph.output] == ["brighter"]


def test_names_by_default(tmp_path):
    def loss(batch, scale):
        return {"loss": (batch["x"] * scale).sum()}

    export.to_saved_model(loss, ({"x": np.ones(3, np.float32)}, np.float32(2)), tmp_path / "model")
    signature = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    assert set(signature.structured_input_signature[1]) == {"batch_x", "scale"}
    assert set(signature.structured_outputs) == {"result_loss"}


@pytest.mark.parametrize("to", ["saved_model", "tflite"])
def test_several_signatures(to, tmp_path):
    functions = {"double": lambda x: 2 * x, "norm": lambda x, y: jnp.hypot(x, y)}
    x = np.ones(3, np.float32)
    args = {"double": (x,), "norm": (x, x)}
    if to == "tflite":
        export.to_tflite(functions, args)
    else:
        export.to_saved_model(functions, args, tmp_path / "model")


@pytest.mark.parametrize("quantize", ["dynamic", "float16", "full"])
def test_quantized_tflite(quantize, params):
    rng = np.random.default_rng(0)
    data = [(rng.uniform(-1, 1, IMAGES.shape).astype(np.float32),) for _ in range(20)]

    def probabilities(params, images):
        return classify(params, images)["probabilities"]

    export.to_tflite(
        probabilities,
        (IMAGES,),
        params=params,
        quantize=quantize,
        representative_data=data if quantize == "full" else None,
    )


@pytest.mark.parametrize("quantize", ["uint8", "uint16", "float16"])
def test_quantized_tfjs(quantize, params, tmp_path):
    export.to_tfjs(
        classify, (IMAGES,), tmp_path / "m", params=params, quantize=quantize, shard_bytes=1000
    )
    assert len(list((tmp_path / "m").glob("*.bin"))) > 1


def test_a_difference_is_an_error_and_leaves_no_file(tmp_path):
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    with pytest.raises(export.VerificationError, match=r"differs from JAX.*'result'"):
        export.to_tfjs(jnp.tanh, (x,), tmp_path / "model", tolerance=0.0)
    assert not list(tmp_path.iterdir())


def test_bad_arguments(tmp_path):
    with pytest.raises(TypeError, match="tuple or list of the positional arguments"):
        export.to_tflite(jnp.sin, IMAGES)
    with pytest.raises(TypeError, match=r"takes arrays and jax\.ShapeDtypeStruct"):
        export.to_tflite(jnp.sin, ("f32[3]",))
    with pytest.raises(ValueError, match="output_names has 2 names for 1 arrays: result"):
        export.to_onnx(jnp.sin, (IMAGES,), output_names=["a", "b"])
    with pytest.raises(ValueError, match="quantize is one of dynamic, float16, full, not 'int4'"):
        export.to_tflite(jnp.sin, (IMAGES,), quantize="int4")
    with pytest.raises(ValueError, match="needs representative_data"):
        export.to_tflite(jnp.sin, (IMAGES,), quantize="full")
    with pytest.raises(ValueError, match="quantize is one of uint8, uint16, float16"):
        export.to_tfjs(jnp.sin, (IMAGES,), tmp_path / "model", quantize="int8")
    with pytest.raises(TypeError, match=r"arguments of each function: \['f', 'g'\]"):
        export.to_tflite({"f": jnp.sin, "g": jnp.cos}, (IMAGES,))
    (tmp_path / "there").write_text("")
    with pytest.raises(FileExistsError, match="no empty directory"):
        export.to_saved_model(jnp.sin, (IMAGES,), tmp_path)


def test_a_missing_package_says_how_to_install_it():
    with pytest.raises(ImportError, match=r"pip install 'lowering\[onnx\]'"):
        export.packages.import_package("no_such_package", "onnx")
