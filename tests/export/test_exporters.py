"""Exported models compute in their real runtimes what JAX computes."""

import inspect
import re
import warnings

import flax.linen as nn
import jax
import jax.extend.core as jex_core
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from flax import nnx
from jax.interpreters import mlir

import lowering
from lowering import export
from lowering.export import onnx, packages, tflite
from lowering.export.entries import _OF_EACH, entry
from lowering.export.tfjs import graph_model
from lowering.targets import ONNX, Target


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
X = np.arange(3, dtype=np.float32)
# Of ONNX; None is the default.
OPSETS = (17, 18, 21, 24, None)


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
        path = tmp_path / f"model{len(list(tmp_path.iterdir()))}"
        write(fun, args, path, **options)
        assert any(path.iterdir())
        return None

    run.format = request.param
    return run


def test_derivatives_of_integers(export_to):
    """They have the dtype float0, and are False in models."""

    def derivatives(index, x):
        _, pullback = jax.vjp(lambda index, x: x[index], index, x)
        return pullback(jnp.ones(index.shape))

    export_to(derivatives, (np.int32([0, 2, 2]), X))


def test_a_flax_model(export_to, params):
    export_to(classify, (IMAGES,), params=params)


def test_a_batch_of_any_size(export_to, params):
    export_to(classify, (IMAGES,), params=params, polymorphic_shapes=["b, ..."])


@pytest.mark.parametrize("constraints", [(), ("b >= 4", "mod(c, 2) == 0")])
def test_structs_with_symbolic_dimensions(export_to, constraints):
    """They say themselves what `polymorphic_shapes` says."""
    scope = jax.export.SymbolicScope(constraints)

    def struct(shape, dtype="float32"):
        return jax.ShapeDtypeStruct(jax.export.symbolic_shape(shape, scope=scope), dtype)

    def fun(inputs, y):
        return inputs["x"] * 2, inputs["z"][0].sum(0), y

    inputs = {"x": struct("b, 4"), "z": [struct("2*b + 1, c", "int32")]}
    export_to(fun, (inputs, jax.ShapeDtypeStruct((3,), "float32")))


def test_dimensions_that_are_symbolic_twice():
    x, y = (jax.ShapeDtypeStruct(jax.export.symbolic_shape("b"), "float32") for _ in range(2))
    with pytest.raises(ValueError, match="b are of several scopes"):
        export.to_onnx(lambda x, y: x, (x, y))
    with pytest.raises(ValueError, match="polymorphic_shapes has to be left out"):
        export.to_onnx(lambda x: x, (x,), polymorphic_shapes=["b"])
    with pytest.raises(ValueError, match="is a sequence of strings, not 'b >= 2'"):
        export.to_onnx(lambda x: x, (x,), polymorphic_constraints="b >= 2")


def test_many_results_and_arguments_keep_their_order(export_to):
    def many(tree, y):
        return [tree["a"] * i + y[0] for i in range(12)] + [y[1], tree["b"] > 0]

    a, b, c = (np.arange(3, dtype=np.float32) + i for i in range(3))
    export_to(many, ({"b": b, "a": a}, (c, np.arange(4, dtype=np.int32))))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1, 1, 1, 1)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "bfloat16", "complex64", "uint8"])
def test_arguments_of_any_rank(export_to, dtype, shape):
    """The samples for a specification without axes are arrays, too, which runtimes take."""
    x = jax.ShapeDtypeStruct(shape, dtype)
    export_to(lambda x, y: (jnp.where(x == y, x, y), x * y), (x, x))


def test_loops_and_branches(export_to):
    def fun(x, n):
        y = jax.lax.fori_loop(0, 4, lambda i, y: y * 0.5 + i, x)
        z, _ = jax.lax.while_loop(lambda s: s[1] < 3, lambda s: (s[0] + 1, s[1] + 1), (x, n))
        return jax.lax.cond(n > 1, lambda: y, lambda: z)

    export_to(fun, (np.arange(3, dtype=np.float32), np.int32(2)))


def test_a_branch_that_returns_an_argument_twice(export_to):
    def fun(x, y):
        return jax.lax.cond(x[0] > 0, lambda: (x, x), lambda: (y, x + y))

    x = np.arange(3, dtype=np.float32)
    for sign in (1, -1):
        export_to(fun, (sign * (x + 1), x))


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


@pytest.mark.parametrize("opset", OPSETS)
def test_opsets(opset, params):
    from lowering.export.onnx import opsets

    model = export.to_onnx(classify, (IMAGES,), params=params, opset=opset)
    library = pytest.importorskip("onnx")
    (version,) = [
        x.version for x in library.load_model_from_string(model).opset_import if not x.domain
    ]
    assert version == (opset or opsets.newest())


def test_names_in_their_order(export_to):
    """TensorFlow tells names apart without their case, and runtimes sort them as they like."""

    def many(x, X, tree):  # noqa: N803
        return {"b": x - X, "a": X + tree["y"]["z"] + tree["x"][0]}

    z, y = np.float32([1, 2]), np.float32([3, 5])
    export_to(many, (z, y, {"y": {"z": z * 7}, "x": [y * 9]}))


def test_names_of_inputs_may_be_those_of_outputs(export_to):
    x = np.float32([1, 2])
    export_to(lambda result: result + 1, (x,))
    if export_to.format == "onnx":
        with pytest.raises(ValueError, match="both called y; give other output_names"):
            export_to(lambda x, y: x + y, (x, x * 3), output_names=["y"])
    else:
        export_to(lambda x, y: (x + y, x - y), (x, x * 3), output_names=["y", "x"])


@pytest.mark.parametrize(
    ("shape", "constraints", "fits"),
    [
        ("b, _", (), lambda b: True),
        ("b, _", ("b >= 7",), lambda b: b >= 7),
        ("4*b, _", (), lambda size: size % 4 == 0),
        ("b, _", ("mod(b, 5) == 0", "b >= 12"), lambda b: b % 5 == 0 and b >= 12),
    ],
)
def test_random_inputs_fit_the_constraints(shape, constraints, fits):
    x = jax.ShapeDtypeStruct((1, 2), "float32")
    made = entry(
        jnp.sin, (x,), ONNX, polymorphic_shapes=[shape], polymorphic_constraints=constraints
    )
    assert fits(made.samples[0].shape[0]) and not made.is_given
    made.reference(*made.samples)


@pytest.mark.parametrize("shapes", [["b, _"], None])
def test_a_constraint_on_what_no_shape_has(shapes):
    x = jax.ShapeDtypeStruct((1, 2), "float32")
    options = {"polymorphic_shapes": shapes, "polymorphic_constraints": ["c >= 4"]}
    with pytest.raises(ValueError, match="has 'c >= 4', but no shape has the variable c"):
        export.to_onnx(jnp.sin, (x,), **options)


def test_constraints_through_a_variable_of_their_own():
    x = jax.ShapeDtypeStruct((1, 2), "float32")
    constraints = ["k == 2*b", "k >= 20"]
    made = entry(
        jnp.sin, (x,), ONNX, polymorphic_shapes=["b, _"], polymorphic_constraints=constraints
    )
    assert made.samples[0].shape[0] >= 10
    scope = jax.export.SymbolicScope(["b >= 4", "c >= 2"])
    x = jax.ShapeDtypeStruct(jax.export.symbolic_shape("b", scope=scope), "float32")
    assert entry(jnp.sin, (x,), ONNX).samples[0].shape[0] >= 4


@pytest.mark.parametrize(
    ("fun", "options", "message"),
    [
        (lambda x, *, scale: x, {}, "fix 'scale' by functools.partial(fun, scale=...)"),
        (lambda w, x: x, {}, "'x' is missing, and params= gives a first argument"),
        (dict, {}, "not the class dict; give an instance"),
        (nnx.Linear(2, 2, rngs=nnx.Rngs(0)), {"params": np.ones(2)}, "nnx, which holds its"),
        (nn.Dense(2), {"params": np.ones(2)}, "Dense is a module of linen"),
        (jnp.sin, {"polymorphic_shapes": [("b", 4)]}, "the size 4 does not fit 2"),
    ],
)
def test_what_is_said_of_other_functions_and_arguments(fun, options, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        export.to_onnx(fun, (jax.ShapeDtypeStruct((1, 2), "float32"),), **options)


def test_inputs_that_are_given(params):
    """They are used for symbolic shapes, too, and say how large what is not given has to be."""
    x, y = np.ones((6, 2), np.float32), jax.ShapeDtypeStruct((1, 2), "float32")
    made = entry(jnp.add, (x, y), ONNX, polymorphic_shapes=["b, _", "b, _"])
    assert [sample.shape for sample in made.samples] == [(6, 2), (6, 2)]
    np.testing.assert_array_equal(made.samples[0], x)
    with pytest.raises(ValueError, match=r"no sizes were found for b to verify.*b >= 9"):
        entry(jnp.sin, (x,), ONNX, polymorphic_shapes=["b, _"], polymorphic_constraints=["b >= 9"])


@pytest.mark.parametrize("to", ["tflite", "onnx", "tfjs"])
def test_what_a_consumer_lacks_is_found_before_its_converter_is_called(to, tmp_path, monkeypatch):
    def never(*args, **kwargs):
        raise AssertionError("a converter is called")

    for module in (tflite, onnx):
        monkeypatch.setattr(module, "converted", never)
    monkeypatch.setattr(graph_model, "write_files", never)
    monkeypatch.setattr(Target, "lacks", lambda _, op, dtype: (op, dtype) == ("Sin", "float32"))

    def program(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * i, x)

    with pytest.raises(lowering.UnsupportedError) as error:
        if to == "tfjs":
            export.to_tfjs(program, (X,), tmp_path / "model")
        else:
            getattr(export, f"to_{to}")(program, (X,))
    message = str(error.value)
    assert "sin(f32[3])" in message and "test_exporters.py" in message
    assert f"needs Sin of float32, which {to} lacks. Compute it otherwise" in message
    assert not list(tmp_path.iterdir())


triangle = jex_core.Primitive("triangle_of_qr")
triangle.def_abstract_eval(lambda x: x)
mlir.register_lowering(
    triangle, mlir.lower_fun(lambda x: jnp.linalg.qr(x)[1], multiple_results=False)
)


@lowering.rule("triangle_of_qr")
def _triangle(ctx, x):
    return tf.linalg.qr(x).r


def test_flex_ops(tmp_path):
    """TensorFlow's kernels run what LiteRT lacks. Python has no interpreter with them."""
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)

    def program(x):
        return jnp.tanh(triangle.bind(x)) + 1

    with pytest.raises(lowering.UnsupportedError, match=r"needs Qr of float32.*lacks"):
        export.to_tflite(program, (x,))
    with pytest.raises(lowering.UnsupportedError, match=r"model has FlexQr.*verify=False"):
        export.to_tflite(program, (x,), allow_flex=True)
    assert b"FlexQr" in export.to_tflite(program, (x,), allow_flex=True, verify=False)
    export.to_tflite(lambda x: jnp.tanh(x) + 1, (x,), allow_flex=True)
    concrete = tf.function(lambda x: tf.linalg.qr(x).r).get_concrete_function(
        tf.TensorSpec((3, 3), tf.float32, "x")
    )
    with pytest.raises(lowering.UnsupportedError, match=r"converter failed.*lacks Qr"):
        tflite.write(concrete, tmp_path / "model")
    tflite.write(concrete, tmp_path / "model", allow_flex=True)
    assert b"FlexQr" in (tmp_path / "model").read_bytes()


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
    with pytest.raises(ValueError, match="output_names has 2 names for 1 array: result"):
        export.to_onnx(jnp.sin, (IMAGES,), output_names=["a", "b"])
    with pytest.raises(ValueError, match="input_names has 'an image'; a name has letters"):
        export.to_onnx(jnp.sin, (IMAGES,), input_names=["an image"])
    with pytest.raises(ValueError, match="names that differ in nothing but their case"):
        export.to_onnx(jnp.hypot, (IMAGES, IMAGES), input_names=["x", "X"])
    with pytest.raises(ValueError, match="input_names has 'x' twice"):
        export.to_onnx(jnp.hypot, (IMAGES, IMAGES), input_names=["x", "x"])
    with pytest.raises(ValueError, match=r"output_names is a sequence of names, not \{'a': 'b'\}"):
        export.to_onnx(jnp.sin, (IMAGES,), output_names={"a": "b"})
    with pytest.raises(TypeError, match=r"not <class 'numpy\.float32'>"):
        export.to_onnx(jnp.sin, (np.float32,))
    with pytest.raises(TypeError, match=r"give np.asarray\(...\) of it or of its list, or to fix"):
        export.to_onnx(jnp.sin, ([[1.0, 2.0]],))
    with pytest.raises(ValueError, match="a sequence of names, not the string 'image'"):
        export.to_onnx(jnp.sin, (IMAGES,), input_names="image")
    with pytest.raises(ValueError, match="opset is a number from 17 to "):
        export.to_onnx(jnp.sin, (IMAGES,), opset=40)
    with pytest.raises(TypeError, match=r"arguments of classify\(params, images\); found 1 arg"):
        export.to_onnx(classify, (IMAGES,))
    with pytest.raises(TypeError, match="found 2 arguments, the first of them params"):
        export.to_onnx(lambda x: x, (IMAGES,), params=X)
    with pytest.raises(TypeError, match="params takes arrays, not ShapeDtypeStruct"):
        export.to_onnx(classify, (IMAGES,), params=IMAGES)
    for exporter in (export.to_onnx, export.to_tflite, export.to_tfjs, export.to_saved_model):
        with pytest.raises(ValueError, match="tolerance is a number of at least 0, not 'small'"):
            exporter(jnp.sin, (IMAGES,), tmp_path / "model", tolerance="small")
    with pytest.raises(TypeError, match=r"params takes arrays, not .* at params\['w'\]"):
        export.to_tflite(classify, (IMAGES,), params={"w": tf.ragged.constant([[1.0], []])})
    with pytest.raises(ValueError, match="a parenthesis is not closed"):
        export.to_onnx(jnp.sin, (IMAGES,), polymorphic_shapes=["(b, ..."])
    for name in (5, ""):
        with pytest.raises(
            TypeError, match=f"name of a signature is a string of letters, not {name!r}"
        ):
            export.to_tflite({name: jnp.sin, "b": jnp.cos}, {name: (X,), "b": (X,)})
    for shapes in ("b, ...", ["b, ..."] * 2):
        with pytest.raises(TypeError, match="polymorphic_shapes has to be a sequence of 1 spec"):
            export.to_onnx(jnp.sin, (IMAGES,), polymorphic_shapes=shapes)
    with pytest.raises(TypeError, match="expected a JAX function, or several by name, not int"):
        export.to_onnx(3, (IMAGES,))
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        export.to_onnx(jnp.sin, (IMAGES,), colour="red")
    with pytest.raises(TypeError, match=r"arguments of each function: \['f', 'g'\]"):
        export.to_tflite({"f": jnp.sin, "g": jnp.cos}, (IMAGES,))
    (tmp_path / "there").write_text("")
    with pytest.raises(FileExistsError, match="no empty directory"):
        export.to_saved_model(jnp.sin, (IMAGES,), tmp_path)


def test_a_missing_package_says_how_to_install_it():
    with pytest.raises(
        ImportError, match=r"no_such_package, which is not installed: pip install 'onnx-ir>="
    ):
        packages.import_package("no_such_package", "onnx")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "complex64", "uint32", "int8", "bool"])
def test_known_numbers_of_symbolic_size(export_to, dtype):
    """Sizes come from arguments of dtypes that consumers lack."""

    def fun(x):
        return jnp.ones((x.shape[0],), dtype), jnp.concatenate([x[:, :1], x[:, 2:]], 1)

    export_to(fun, (jax.ShapeDtypeStruct((3, 4), dtype),), polymorphic_shapes=("b, 4",))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint32", "int8"])
def test_reductions_of_nothing(export_to, dtype):
    def fun(x):
        nothing = x[:, :0]
        number = jnp.ones((), dtype)
        return (
            jnp.sum(nothing, 1),
            jnp.prod(nothing, 1) + number,
            jnp.max(nothing, 1, initial=number),
            jnp.min(nothing, 1, initial=number),
            jnp.any(nothing > number, 1),
            jnp.all(nothing > number, 1),
            x,
        )

    export_to(fun, (jax.ShapeDtypeStruct((3, 4), dtype),), polymorphic_shapes=("b, 4",))


def test_loops_of_known_numbers_run_before_the_export(export_to):
    """TensorFlow runs them, whatever ops the runtime lacks."""
    table = np.arange(64, dtype=np.float32).reshape(8, 8)

    def fun(x):
        def body(k, carry):
            kept, total, bits = carry
            row = jnp.asarray(table)[k]
            return kept & (row > k), total + jnp.sort(row) % 3, bits ^ (bits << k)

        start = (jnp.ones(8, bool), jnp.zeros(8), jnp.uint32(7))
        kept, total, bits = jax.lax.fori_loop(0, 8, body, start)
        return jnp.where(kept, x, total), bits

    export_to(fun, (np.arange(8, dtype=np.float32),))


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint8", "uint16", "uint32"])
def test_integers_of_all_sizes(export_to, dtype):
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, info.max // 2 + 1, 1, 0, 5], dtype)

    def fun(x):
        arithmetic = {"sum": x + x[::-1] - 1, "negative": -x, "parts": (x // 3, x % 7)}
        order = {"sorted": jnp.sort(x), "greater": x > x[::-1], "largest": jnp.max(x)}
        return arithmetic, order, (x >> 1, x << 2, x ^ 3), x.astype(jnp.float32), x

    export_to(fun, (x,))


@pytest.mark.parametrize("opset", OPSETS)
def test_orders_in_opsets(opset):
    """onnxruntime sorts integers of 32 bits as they are; complements are bits since opset 18."""
    x = np.array([[5, -(2**31), 2**31 - 1, 16777217, 16777216, 5]], np.int32)

    def fun(x):
        return jnp.sort(x, 1), jnp.argsort(x, 1), jax.lax.top_k(x, 4), jnp.sort(x.astype("uint32"))

    model = export.to_onnx(fun, (x,), opset=opset)
    ops = [n.op_type for n in pytest.importorskip("onnx").load_model_from_string(model).graph.node]
    assert 3 <= ops.count("TopK") <= 4


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "int4", "uint4"])
def test_inputs_and_outputs_of_eight_bits_or_fewer(export_to, dtype):
    """Models hold them in a wider dtype, whose other numbers are rounded as JAX rounds them."""
    x = jnp.arange(12).reshape(3, 4).astype(dtype)

    def fun(x, y):
        return x, (x.astype(jnp.float32) * y).astype(dtype), x[::-1]

    export_to(fun, (x, np.float32(0.3)), polymorphic_shapes=("b, 4", None))


@pytest.mark.parametrize("dtype", ["int4", "uint4"])
def test_sums_and_products_of_eight_bits_or_fewer_wrap_around(export_to, dtype):
    """In JAX as well, whatever reads the results."""
    x = jnp.arange(4).astype(dtype)
    export_to(lambda x: (x + x, x * x, x - 2 * x), (x,))


@pytest.mark.parametrize("dtype", ["float8_e5m2", "float8_e5m2fnuz", "int4", "uint4"])
def test_parameters_of_eight_bits_or_fewer(export_to, dtype):
    weights = {"w": jnp.arange(12).reshape(3, 4).astype(dtype)}

    def fun(params, x):
        return x @ params["w"].astype(jnp.float32)

    export_to(fun, (np.ones((2, 3), np.float32),), params=weights)


@pytest.mark.parametrize("polymorphic_shapes", [None, (None, "b, 4, 4", "b, 4, 2")])
def test_shapes_of_what_branches_are_given(export_to, polymorphic_shapes):
    """Each operand has another shape, and loops and solutions within the branches need them."""
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(2, 4, 4)) + 1j * rng.normal(size=(2, 4, 4))).astype(np.complex64)
    y = (rng.normal(size=(2, 4, 2)) + 1j * rng.normal(size=(2, 4, 2))).astype(np.complex64)

    def solved_or_not(condition, x, y):
        return jax.lax.cond(
            condition > 0, lambda x, y: jnp.linalg.solve(x, y), lambda x, y: y, x, y
        )

    args = np.float32(1), x, y
    export_to(solved_or_not, args, polymorphic_shapes=polymorphic_shapes)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int32", "uint8"])
def test_bools_as_numbers_are_compared_with_known_ones(export_to, dtype):
    """Some of the comparisons are decided, as the numbers are 0 or 1."""

    def fun(x):
        number = x.astype(dtype)
        known = [np.array(n, dtype) for n in (0, 1, 2)]
        return [
            compare(number, n) for n in known for compare in (jnp.less, jnp.less_equal, jnp.equal)
        ] + [compare(n, number) for n in known for compare in (jnp.less, jnp.less_equal)]

    export_to(fun, (np.array([[True, False, True]]),))


@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_vectors_of_another_sign_are_explained(name):
    x = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)

    def fun(x):
        return getattr(jnp.linalg, name)(x @ x.T)[-1]

    with pytest.raises(export.VerificationError, match=f"The vectors of {name} are unique up to"):
        export.to_onnx(fun, (x,), tolerance=0.0)


class _Module(tf.Module):
    """TensorFlow wraps the containers among its attributes."""

    def __init__(self):
        super().__init__()
        self.params = {"w": jnp.ones((3, 2)), "b": [jnp.zeros(2), jnp.ones(2)]}

    def __call__(self, x):
        params = jax.tree.map(lambda p: 2 * p, self.params)
        return x @ params["w"] + params["b"][1]


def test_modules_of_tensorflow(export_to):
    module = _Module()
    for fun in module, module.__call__, lambda x: module(x):
        export_to(fun, (np.ones((1, 3), np.float32),))


@pytest.mark.parametrize(
    "exporter", [export.to_saved_model, export.to_tflite, export.to_onnx, export.to_tfjs]
)
def test_options_are_in_the_signature(exporter):
    """So an editor completes them, and an error on a misspelt one names the exporter."""
    parameters = inspect.signature(exporter).parameters
    assert {"params", *_OF_EACH, "verify", "tolerance"} <= set(parameters)
    assert not any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    with pytest.raises(TypeError, match=rf"{exporter.__name__}\(\) got an .* argument 'parms'"):
        exporter(jnp.sin, (np.ones(3),), parms=3)


def test_jaxprs_say_what_they_are_from(export_to):
    """JAX warns of those that do not; where warnings are errors, nothing could be exported."""

    def fun(x):
        _, rows = jax.lax.scan(lambda carry, _: (carry * 2, carry), x, None, length=20)
        return rows + jax.lax.cond(x[0] > 0, lambda: x, lambda: -x)

    with warnings.catch_warnings():
        warnings.filterwarnings("error", "core.Jaxpr is missing", DeprecationWarning)
        export_to(fun, (np.ones(3, np.float32),))
