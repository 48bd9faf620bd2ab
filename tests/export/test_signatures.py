"""Functions that are lowered already, and several functions in one model."""

import json
import os
import pathlib
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

import lowering
from lowering import export
from lowering.export import onnx, saved_model, signatures, tfjs, tflite
from lowering.export.tfjs import node

W = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32) / 8
X = jax.ShapeDtypeStruct((2, 64), "float32")
FUNCTIONS = {
    "encode": lambda w, x: jnp.tanh(x @ w),
    "decode": lambda w, y, scale: {"x": (y @ w) * scale, "largest": y.max()},
}
ARGS = {"encode": (X,), "decode": (X, jax.ShapeDtypeStruct((), "float32"))}


def litert(path):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    return interpreter.Interpreter(model_path=str(path))


@pytest.fixture
def lowered():
    """A function with a variable and a captured tensor, of a pytree; and what it returns."""
    w, b = tf.Variable(W[:3, :3]), tf.constant([1.0, 2.0, 3.0])
    converted = lowering.convert(lambda w, x: jnp.tanh(x @ w), target="portable")

    def run(x, more):
        return {"y": converted(w, x) + b, "sums": (more["n"] + 1, tf.reduce_sum(x))}, x * 2

    x, n = np.ones((2, 3), np.float32), np.int32([4, 5])
    spec = tf.TensorSpec((2, 3), tf.float32, "x"), {"n": tf.TensorSpec((2,), tf.int32, "n")}
    concrete = tf.function(run, autograph=False).get_concrete_function(*spec)
    expected = {
        "output_0_sums_0": n + 1,
        "output_0_sums_1": x.sum(),
        "output_0_y": np.tanh(x @ W[:3, :3]) + b.numpy(),
        "output_1": x * 2,
    }
    yield concrete, {"x": x, "n": n}, expected
    assert w.shape == (3, 3)  # A graph does not keep its variables, but this does.


def check(results, expected):
    assert set(results) == set(expected)
    for name, e in expected.items():
        np.testing.assert_allclose(results[name], e, rtol=1e-5, err_msg=name)


def test_a_lowered_function_as_a_saved_model(lowered, tmp_path):
    concrete, inputs, expected = lowered
    saved_model.write(concrete, tmp_path / "model")
    model = tf.saved_model.load(str(tmp_path / "model"))
    signature = model.signatures["serving_default"]
    check(signature(**{k: tf.constant(x) for k, x in inputs.items()}), expected)
    assert len(signature.variables) == 1


def test_a_lowered_function_as_tflite(lowered, tmp_path):
    concrete, inputs, expected = lowered
    tflite.write(concrete, tmp_path / "model.tflite")
    check(litert(tmp_path / "model.tflite").get_signature_runner()(**inputs), expected)


def test_a_lowered_function_as_onnx(lowered, tmp_path):
    concrete, inputs, expected = lowered
    onnx.write(concrete, tmp_path / "model.onnx")
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    names = [x.name for x in session.get_outputs()]
    check(dict(zip(names, session.run(names, inputs), strict=True)), expected)


def test_a_lowered_function_as_tfjs(lowered, tmp_path):
    concrete, inputs, expected = lowered
    tfjs.write(concrete, tmp_path / "model")
    for results in node.run(tmp_path / "model", inputs).values():
        check(results, expected)


@pytest.mark.parametrize("module", [saved_model, tflite, tfjs])
def test_lowered_functions_by_name(module, tmp_path):
    w = tf.Variable(W)
    spec = tf.TensorSpec((2, 64), tf.float32, "x")
    made = {
        name: tf.function(lambda x, f=f: {"y": f(x @ w)}, autograph=False).get_concrete_function(
            spec
        )
        for name, f in {"f": tf.tanh, "g": tf.nn.relu}.items()
    }
    module.write(made, tmp_path / "model")
    x = np.linspace(-1, 1, 128, dtype=np.float32).reshape(2, 64)
    expected = {"f": np.tanh(x @ W), "g": np.maximum(x @ W, 0)}
    for name, e in expected.items():
        if module is saved_model:
            y = tf.saved_model.load(str(tmp_path / "model")).signatures[name](x=tf.constant(x))["y"]
        elif module is tflite:
            y = litert(tmp_path / "model").get_signature_runner(name)(x=x)["y"]
        else:
            y = node.run(tmp_path / "model", {f"{name}/x": x}, [f"{name}/y"])["cpu"][f"{name}/y"]
        np.testing.assert_allclose(y, e, atol=1e-5)
    assert size(tmp_path / "model") < 1.5 * W.nbytes


def size(path: pathlib.Path) -> int:
    """The bytes of a file, or of the weights in a directory."""
    if path.is_file():
        return path.stat().st_size
    weights = [*path.glob("*.bin"), *path.glob("variables/*")]
    return sum(part.stat().st_size for part in weights)


@pytest.mark.parametrize("to", ["saved_model", "tflite", "tfjs"])
def test_several_functions_store_parameters_once(to, tmp_path):
    sizes = []
    for names in (["encode"], ["encode", "decode"]):
        fun, args = {k: FUNCTIONS[k] for k in names}, {k: ARGS[k] for k in names}
        path = tmp_path / str(len(names))
        if to == "tflite":
            path.write_bytes(export.to_tflite(fun, args, params=W))
        else:
            getattr(export, f"to_{to}")(fun, args, path, params=W)
        sizes.append(size(path))
    assert sizes[0] >= W.nbytes
    assert sizes[1] < 1.25 * sizes[0]


def test_tied_weights_are_stored_once_in_tfjs(tmp_path):
    def tied(w, words, y):
        return w[words] * 2, y @ w.T

    args = (jax.ShapeDtypeStruct((3,), "int32"), X)
    export.to_tfjs(tied, args, tmp_path / "model", params=W)
    assert size(tmp_path / "model") < 1.25 * W.nbytes


def test_options_of_each_function(tmp_path):
    export.to_saved_model(
        FUNCTIONS,
        ARGS,
        tmp_path / "model",
        params=W,
        polymorphic_shapes={"encode": ["b, _"], "decode": ["c, _", None]},
        input_names={"encode": ["image"]},
    )
    model = tf.saved_model.load(str(tmp_path / "model"))
    loaded = model.signatures
    (spec,) = loaded["encode"].structured_input_signature[1].values()
    assert spec.name == "image" and spec.shape.as_list() == [None, 64]
    assert loaded["decode"](y=tf.ones((5, 64)), scale=tf.constant(2.0))["result_x"].shape == (5, 64)
    assert len({id(v) for f in loaded.values() for v in f.variables}) == 1


def test_each_function_is_verified(tmp_path):
    functions = {"same": lambda x: x + 1, "wrong": jnp.tanh}
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    message = r"'wrong' of the TF\.js model on cpu differs"
    with pytest.raises(export.VerificationError, match=message):
        export.to_tfjs(functions, dict.fromkeys(functions, (x,)), tmp_path / "model", tolerance=0.0)
    assert not list(tmp_path.iterdir())


def test_onnx_has_one_function(lowered, tmp_path):
    message = "an ONNX model has one function.*each of encode, decode to a file of its own"
    with pytest.raises(ValueError, match=message):
        export.to_onnx(FUNCTIONS, ARGS, params=W)
    with pytest.raises(ValueError, match=message):
        onnx.write(dict.fromkeys(FUNCTIONS, lowered[0]), tmp_path / "model.onnx")


def test_names_of_functions_of_tfjs(lowered, tmp_path):
    for names in (["a b"], ["f", "F"], ["a/b"]):
        with pytest.raises(ValueError, match="expected names of letters, digits and underscores"):
            tfjs.write(dict.fromkeys(names, lowered[0]), tmp_path / "model")


def test_the_signature_of_tfjs_names_what_a_node_is(tmp_path):
    export.to_tfjs(FUNCTIONS, ARGS, tmp_path / "model", params=W)
    signature = json.loads((tmp_path / "model" / "model.json").read_text())["signature"]
    assert list(signature["inputs"]) == ["encode/x", "decode/y", "decode/scale"]
    assert set(signature["outputs"]) == {
        "encode/result",
        "decode/result_x",
        "decode/result_largest",
    }


@pytest.mark.parametrize("module", [saved_model, tflite, onnx, tfjs])
@pytest.mark.parametrize("found", [jnp.sin, tf.function(tf.sin), 3, {"f": 3}])
def test_what_is_no_concrete_function(module, found, tmp_path):
    if module is onnx and isinstance(found, dict):
        found = found["f"]
    with pytest.raises(TypeError, match=r"expected a concrete function.*get_concrete_function"):
        module.write(found, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("module", [saved_model, tflite, onnx, tfjs])
def test_nothing_is_overwritten(module, lowered, tmp_path):
    path = tmp_path / "model"
    path.write_text("precious")
    with pytest.raises(FileExistsError, match="model exists"):
        module.write(lowered[0], path)
    assert path.read_text() == "precious" and os.listdir(tmp_path) == ["model"]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["x", "x", "x_1"], ["x", "x_2", "x_1"]),
        (["x", "X"], ["x", "X_1"]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_unique_names(names, expected):
    assert signatures.unique(names) == expected


def test_outputs_are_in_the_order_of_what_the_function_returns():
    """`tf.nest` sorts the keys of dictionaries: "y10" comes before "y2" there."""
    outputs = {f"y{i}": (tf.constant(i), {"b": tf.constant(0), "a": None}) for i in range(11)}
    concrete = tf.function(lambda: outputs, autograph=False).get_concrete_function()
    flat = signatures.flat(concrete)
    expected = [f"y{i}_{part}" for i in range(11) for part in ("0", "1_b")]
    assert list(signatures.named(concrete, concrete.outputs)) == expected
    assert list(signatures.named(flat, flat.outputs)) == expected
    merged = signatures.merged({"one": flat, "another": concrete})
    names = [f"{name}/{output}" for name in ("one", "another") for output in expected]
    assert list(signatures.named(merged, merged.outputs)) == names
    found = merged()
    assert [int(found[f"one/y{i}_0"]) for i in range(11)] == list(range(11))


def test_outputs_in_an_attrs_class_have_their_order():
    attrs = pytest.importorskip("attrs")
    made = attrs.make_class("Pair", ["second", "first"])(tf.constant(2), tf.constant(1))
    concrete = tf.function(lambda: {"x": made}, autograph=False).get_concrete_function()
    assert list(signatures.named(concrete, concrete.outputs)) == ["x_second", "x_first"]


def test_files_have_outputs_in_their_order(tmp_path):
    package = pytest.importorskip("onnx")
    names = [f"y{i}" for i in range(11)]

    def fun(x):
        return [x + i for i in range(11)]

    args = (np.zeros(3, np.float32),)
    for given in (names, names[::-1], None):
        path = tmp_path / f"saved{given and given[0]}"
        report = export.to_saved_model(fun, args, path, output_names=given, verify=False)
        in_order = given or [f"result_{i}" for i in range(11)]
        found = export.load(path)(np.zeros(3, np.float32))
        assert [x.name for x in report.outputs] == list(found) == in_order
        assert [x[0] for x in found.values()] == list(range(11))
        # What others save anew lacks the file with the order.
        shutil.rmtree(path / "assets.extra")
        (again,) = export.inspect(path).signatures.values()
        assert [x.name for x in again.outputs] == sorted(in_order, key=lambda x: (len(x), x))
    model = package.load_from_string(export.to_onnx(fun, args, output_names=names))
    assert [x.name for x in model.graph.output] == names
    export.to_tfjs(fun, args, tmp_path / "model", output_names=names, verify=False)
    topology = json.loads((tmp_path / "model" / "model.json").read_text())
    assert list(topology["signature"]["outputs"]) == names
