"""What exporters return and read: reports, loaded models, metadata, gradients, modules."""

import copy
import importlib
import io
import pickle
import subprocess
import sys
import zipfile

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2

import lowering
from lowering import export
from lowering.errors import UnsupportedError
from lowering.export import schemas
from tests.helpers import ROOT

W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
X = jax.ShapeDtypeStruct((4, 3), "float32")
GIVEN = np.linspace(-2, 2, 15, dtype=np.float32).reshape(5, 3)
EXPORTERS = {
    "saved_model": export.to_saved_model,
    "tflite": export.to_tflite,
    "onnx": export.to_onnx,
    "tfjs": export.to_tfjs,
}


def predict(w, x):
    return {"scores": jnp.tanh(x @ w), "total": jnp.sum(x)}


@pytest.fixture(params=EXPORTERS)
def to(request):
    return EXPORTERS[request.param]


def test_a_file_its_report_and_the_loaded_model(to, tmp_path):
    path = tmp_path / "model"
    report = to(predict, (X,), path, params=W, polymorphic_shapes=[("b", 3)])
    assert report.file == path and path.exists()
    assert [(x.name, x.dtype, x.shape[1]) for x in report.inputs] == [("x", "float32", 3)]
    assert sorted(x.name for x in report.outputs) == ["result_scores", "result_total"]
    assert all(0 <= error.found <= error.accepted for error in report.errors.values())
    assert sorted(report.errors) == ["result_scores", "result_total"]
    assert sum(report.ops.values()) >= 3 and report.seconds > 0 and report.size > 100
    assert "result_scores" in str(report) and str(path) in repr(report)
    assert report._repr_html_().startswith("<table>")
    again = copy.deepcopy(pickle.loads(pickle.dumps(getattr(report, "report", report))))
    assert list(again.rows()) == list(report.rows())
    assert (again.file, again.errors, again.inputs) == (path, report.errors, report.inputs)
    model = export.load(path)
    found, expected = model(GIVEN), predict(W, GIVEN)
    assert sorted(found) == ["result_scores", "result_total"]
    np.testing.assert_allclose(found["result_scores"], expected["scores"], rtol=1e-5)
    np.testing.assert_allclose(model(x=GIVEN)["result_total"], np.sum(GIVEN), atol=1e-5)
    with pytest.raises(ValueError, match="cannot have the shape"):
        model(GIVEN[:, :2])
    with pytest.raises(TypeError, match="the inputs are x"):
        model(y=GIVEN)
    with pytest.raises(TypeError, match="the input 'x' is float32, not complex64"):
        model(GIVEN.astype("complex64"))


def test_overwriting(to, tmp_path):
    """The old model stays until the new one is complete."""
    path = tmp_path / "model"
    to(predict, (X,), path, params=W, verify=False)
    before = export.inspect(path)
    with pytest.raises(FileExistsError, match="exists"):
        to(predict, (X,), path, params=W, verify=False)

    def fails(w, x):
        raise KeyError("on purpose")

    with pytest.raises(KeyError):
        to(fails, (X,), path, params=W, overwrite=True)
    assert export.inspect(path) == before
    report = to(lambda x: x + 1, (X,), path, overwrite=True, verify=False)
    assert report.errors == {} and "not compared" in str(report)
    assert [x.name for x in tmp_path.iterdir()] == ["model"]
    np.testing.assert_array_equal(export.load(path)(GIVEN[:4]), GIVEN[:4] + 1)


def test_models_without_a_file_are_bytes():
    model = export.to_onnx(predict, (X,), params=W)
    assert isinstance(model, bytes) and model.file is None and len(model) == model.size
    with pytest.raises(TypeError, match="the path of a model, not bytes; write them to a file"):
        export.load(model)
    assert model.inputs[0].name == "x" and "MatMul" in repr(model)
    restored = pickle.loads(pickle.dumps(model))
    assert type(restored) is bytes and restored == bytes(model)


@pytest.mark.parametrize("name", ["saved_model", "tflite", "tfjs"])
def test_several_functions(name, tmp_path):
    functions = {"double": lambda x: 2 * x, "norm": lambda x: jnp.sum(x * x)}
    path = tmp_path / "model"
    report = EXPORTERS[name](functions, dict.fromkeys(functions, (X,)), path)
    assert sorted(report.errors) == ["double/result", "norm/result"]
    assert sorted(report.description.signatures) == ["double", "norm"]
    model = export.load(path, "norm")
    np.testing.assert_allclose(model(GIVEN[:4]), np.sum(GIVEN[:4] ** 2), rtol=1e-6)
    np.testing.assert_array_equal(model.signatures["double"](GIVEN[:4]), 2 * GIVEN[:4])
    with pytest.raises(ValueError, match="has no signature 'other'; it has "):
        export.load(path, "other")


def test_arguments_have_the_order_of_the_function(to, tmp_path):
    """TensorFlow sorts them by name."""

    def fun(z, mask, batch):
        return {"least": z - batch["a"], "best": mask * batch["b"]}

    path = tmp_path / "model"
    args = (X, X, {"b": X, "a": X})
    report = to(fun, args, path, output_names=["top", "last"], verify=False)
    assert [x.name for x in report.inputs] == ["z", "mask", "batch_a", "batch_b"]
    z, mask, a, b = (np.full((4, 3), i, np.float32) for i in range(1, 5))
    found = export.load(path)(z, mask, a, b)
    np.testing.assert_array_equal(found["top"], mask * b)
    np.testing.assert_array_equal(found["last"], z - a)


def test_positions_of_tflite():
    model = export.to_tflite(
        lambda z, a: (z, a - z), (X, X), input_names=["z", "a"], output_names=["y", "b"]
    )
    litert = importlib.import_module("ai_edge_litert.interpreter")
    interpreter = litert.Interpreter(model_content=model)
    interpreter.allocate_tensors()
    for details, value in zip(interpreter.get_input_details(), (1, 5), strict=True):
        interpreter.set_tensor(details["index"], np.full((4, 3), value, np.float32))
    interpreter.invoke()
    outputs = [interpreter.get_tensor(x["index"]) for x in interpreter.get_output_details()]
    assert [float(x[0, 0]) for x in outputs] == [1, 4]


def test_weights_beside_a_model(tmp_path):
    path = tmp_path / "model.onnx"
    w = np.ones((300, 300), np.float32)
    x = jax.ShapeDtypeStruct((1, 300), "float32")
    report = export.to_onnx(lambda w, x: x @ w, (x,), path, params=w, external_data=True)
    assert report.size >= w.nbytes > path.stat().st_size
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(ValueError, match=r"model\.onnx\.data is missing, which has its weights"):
        export.load(path)


@pytest.mark.parametrize("to", ["tflite", "onnx", "tfjs"])
def test_files_are_described_without_tensorflow(to, tmp_path):
    """It takes seconds to import."""
    path = tmp_path / "model"
    EXPORTERS[to](lambda x: x + 1, (np.ones(3, "float32"),), path)
    code = (
        "import sys\nfrom lowering import export\n"
        f"print(export.inspect({str(path)!r}))\n"
        "assert not {'tensorflow', 'jax'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == f"{export.inspect(path)}\n", done.stderr


@pytest.mark.parametrize("number", range(1, 30))
def test_names_of_dtypes_are_those_of_tensorflow(number):
    dtype = tf.as_dtype(number)
    assert schemas.dtype(types_pb2.DataType.Name(number)) == dtype.name


def test_other_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        export.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("no model")
    with pytest.raises(ValueError, match="is no model of any known format: SavedModel"):
        export.inspect(tmp_path / "text")
    (tmp_path / "model.tflite").write_bytes(b"\0\0\0\0TFL3\0\0")
    with pytest.raises(ValueError, match="cannot be read as TF Lite"):
        export.inspect(tmp_path / "model.tflite")
    (tmp_path / "model.onnx").write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read as ONNX: it has no graph"):
        export.inspect(tmp_path / "model.onnx")
    export.to_saved_model(jnp.sin, (X,), tmp_path / "saved", verify=False)
    file = tmp_path / "saved" / "saved_model.pb"
    assert export.inspect(file) == export.inspect(file.parent)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match="cannot be read as SavedModel: it has no graph"):
        export.load(file)
    export.to_tfjs(lambda w, x: x @ w, (X,), tmp_path / "web", params=W, verify=False)
    next((tmp_path / "web").glob("*.bin")).unlink()
    with pytest.raises(ValueError, match=r"cannot be read as TF.js: .*bin is missing"):
        export.inspect(tmp_path / "web")
    for text in ("{}", "[]", '{"modelTopology": {}}'):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(ValueError, match="cannot be read as TF\\.js: it is no graph"):
            export.load(tmp_path / "model.json")


METADATA: export.Metadata = {
    "name": "scores",
    "description": "Scores of two classes.",
    "labels": ["cat", "dog"],
}


def test_tensorflow_warns_of_no_gradients(caplog):
    """A TF Lite model has none that could be lost."""
    with caplog.at_level("WARNING", "absl"):
        export.to_tflite(predict, (X,), params=W, verify=False)
    assert "gradient" not in caplog.text


def test_metadata_of_tflite():
    """As MediaPipe and Android read it; the loader finds the model as before."""
    model = export.to_tflite(predict, (X,), params=W, metadata=METADATA)
    archive = zipfile.ZipFile(io.BytesIO(model))
    assert archive.read("result_scores_labels.txt") == b"cat\ndog"
    assert all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())
    described = model.description.metadata
    assert described["name"] == "scores" and described["description"] == "Scores of two classes."
    assert described["labels"] == '{"result_scores": ["cat", "dog"]}'
    assert "TFLITE_METADATA" in described["metadata"]
    litert = importlib.import_module("ai_edge_litert.interpreter")
    runner = litert.Interpreter(model_content=model).get_signature_runner()
    np.testing.assert_allclose(
        runner(x=GIVEN[:4])["result_scores"], np.tanh(GIVEN[:4] @ W), rtol=1e-5
    )
    content = bytes(model)
    assert content.count(b"M001") == 1 and content.count(b"scores") > 1


def test_labels_of_several_lines():
    """A file of labels has one in each line; JSON has any."""
    labels = ["cat\nor dog", "bird"]
    with pytest.raises(ValueError, match=r"the label 'cat\\nor dog' has a line break"):
        export.to_tflite(predict, (X,), params=W, metadata={"labels": labels})
    model = export.to_onnx(predict, (X,), params=W, metadata={"labels": labels}, verify=False)
    assert r"cat\nor dog" in model.description.metadata["labels"]


def test_metadata_of_onnx():
    described = export.to_onnx(predict, (X,), params=W, metadata=METADATA).description.metadata
    assert described["name"] == "scores" and described["description"] == "Scores of two classes."
    assert described["labels"] == '{"result_scores": ["cat", "dog"]}'


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"title": "x"}, "metadata has 'title'; its parts are name, description, labels"),
        ({"labels": ["a", "b", "c"]}, "3 labels, and no output has a last dimension of 3"),
        ({"labels": {"y": ["a"]}}, "labels are of 'y', but the outputs are result_scores"),
        ({"labels": {"result_scores": ["a"]}}, "whose last dimension is 2"),
        ({"labels": "ab"}, "a sequence of strings, not a string"),
    ],
)
def test_metadata_that_makes_no_sense(metadata, message):
    with pytest.raises((TypeError, ValueError), match=message):
        export.to_onnx(predict, (X,), params=W, metadata=metadata, verify=False)


def test_gradients(tmp_path):
    """They are those of JAX, custom ones included, once the model is loaded."""

    @jax.custom_jvp
    def clipped(x):
        return jnp.clip(x, 0, 1)

    clipped.defjvps(lambda t, _, x: 3 * t)

    def loss(w, x):
        return jnp.sum(clipped(x @ w))

    args = (jax.ShapeDtypeStruct((3, 2), "float32"), X)
    export.to_saved_model(loss, args, tmp_path / "model", gradients=True)
    signature = tf.saved_model.load(str(tmp_path / "model")).signatures["serving_default"]
    w, x = tf.constant(W), tf.constant(GIVEN[:4])
    with tf.GradientTape() as tape:
        tape.watch(w)
        (value,) = signature(w=w, x=x).values()
    np.testing.assert_allclose(tape.gradient(value, w), jax.grad(loss)(W, GIVEN[:4]), rtol=1e-5)


def test_shapes_as_tuples():
    def fun(pair, x):
        return pair[0] + pair[1], x

    args = ((X, X), X)
    shapes = [(("b", 3), ("b", 3)), ("c", ...)]
    model = export.to_onnx(fun, args, polymorphic_shapes=shapes)
    assert [x.shape[1] for x in model.inputs] == [3, 3, 3]
    assert not any(isinstance(x.shape[0], int) for x in model.inputs)
    same = export.to_onnx(fun, args, polymorphic_shapes=[("b", 3), None])
    assert [isinstance(x.shape[0], int) for x in same.inputs] == [False, False, True]
    doubled = tf.function(
        lowering.convert(lambda x: x + x.shape[0], polymorphic_shapes=[("b", 3)]),
        autograph=False,
        input_signature=[tf.TensorSpec([None, 3], tf.float32)],
    )
    np.testing.assert_array_equal(doubled(GIVEN), GIVEN + 5)


@pytest.mark.parametrize("spec", ["(b,)", ("b",)])
def test_shapes_of_another_rank(spec):
    with pytest.raises(ValueError, match=r"for an array of the shape \(4, 3\), which has 2"):
        export.to_onnx(jnp.sin, (X,), polymorphic_shapes=[spec])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ([{"x": "b"}], "(?s)polymorphic_shapes must be a pytree prefix.*polymorphic_shapes\\[0\\]"),
        (
            [["b", 3]],
            r'must be .* an array, such as "\(b, 3\)" or \("b", 3\)',
        ),
        ([3], "polymorphic_shapes has an item that is no .*, not int"),
        ([("b+", 3)], "polymorphic_shapes has an item that is no specification, "),
        ({"x": "b"}, "polymorphic_shapes has to be a sequence of 1 specifications"),
        (3, "polymorphic_shapes has to be a sequence of 1 specifications"),
    ],
)
def test_shapes_that_are_none(shapes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        export.to_onnx(jnp.sin, (X,), polymorphic_shapes=shapes)


@pytest.mark.parametrize("to", [export.to_saved_model, export.to_tfjs])
def test_directories_have_a_path(to, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match="not NoneType"):
        to(jnp.sin, (X,), None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["tflite", "onnx", "tfjs"])
def test_functions_that_return_nothing(name, tmp_path):
    with pytest.raises(UnsupportedError, match="returns no arrays"):
        EXPORTERS[name](lambda x: None, (X,), tmp_path / "model")


@pytest.mark.parametrize("input_name", ["in", "class", "self"])
def test_names_of_inputs_that_python_has(to, input_name, tmp_path):
    """TensorFlow makes parameters of the inputs of a SavedModel, of which TF Lite is made."""
    options = {"params": W, "input_names": [input_name]}
    if to in (export.to_onnx, export.to_tfjs):
        to(predict, (X,), tmp_path / "model", **options, verify=False)
        found = export.load(tmp_path / "model")(**{input_name: GIVEN[:4]})
        np.testing.assert_allclose(found["result_scores"], np.tanh(GIVEN[:4] @ W), rtol=1e-5)
        return
    with pytest.raises(
        ValueError, match=f"cannot be called '{input_name}'.* such as {input_name}_"
    ):
        to(predict, (X,), tmp_path / "model", **options)
    to(predict, (X,), tmp_path / "model", params=W, input_names=[f"{input_name}_"], verify=False)


def test_modules_of_nnx(tmp_path):
    """Those that train change their state, which the model forgets."""
    nnx = pytest.importorskip("flax.nnx")

    class Network(nnx.Module):
        def __init__(self):
            rngs = nnx.Rngs(0)
            self.dense, self.norm = nnx.Linear(3, 2, rngs=rngs), nnx.BatchNorm(2, rngs=rngs)
            self.dropout = nnx.Dropout(0.0, rngs=rngs)

        def __call__(self, x):
            return self.dropout(self.norm(self.dense(x)))

    for is_training in (False, True):
        network = Network()
        network.train() if is_training else network.eval()
        mean = np.asarray(network.norm.mean[...])
        path = tmp_path / str(is_training)
        report = export.to_saved_model(network, (X,), path, polymorphic_shapes=[("b", 3)])
        assert [x.name for x in report.inputs] == ["x"]
        assert "ReadVariableOp" in report.ops
        np.testing.assert_array_equal(network.norm.mean[...], mean)
        np.testing.assert_allclose(export.load(path)(GIVEN), network(GIVEN), atol=1e-5)


def test_modules_that_are_pytrees():
    eqx = pytest.importorskip("equinox")
    network = eqx.nn.MLP(3, 2, 8, 2, key=jax.random.key(0))
    x = jax.ShapeDtypeStruct((3,), "float32")
    report = export.to_onnx(network, (x,))
    assert [x.name for x in report.inputs] == ["x"] and report.ops["MatMul"] == 3
    partial = jax.tree_util.Partial(predict, jnp.asarray(W))
    assert export.to_tflite(partial, (X,)).outputs
