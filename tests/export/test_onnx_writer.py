"""The writer of ONNX models: each op gives TensorFlow's numbers, and each graph is a lean one."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import call_tf
from lowering.errors import UnsupportedError
from lowering.export import onnx
from lowering.export.entries import entry
from lowering.export.flat import flat_entry
from lowering.export.onnx import saving
from lowering.export.verification import VerificationError, verify
from lowering.targets import ONNX

package = pytest.importorskip("onnx")
ir = pytest.importorskip("onnx_ir")
pytest.importorskip("onnxruntime")

from lowering.export.onnx import model as models  # noqa: E402  It needs the packages above.
from lowering.export.onnx import opsets  # noqa: E402

RNG = np.random.default_rng(0)
NEWEST = opsets.newest()


def numbers(*shape):
    return RNG.normal(size=shape).astype(np.float32)


ROWS, MATRIX, IMAGES = numbers(3, 4), numbers(4, 4), numbers(2, 6, 6, 4)
INTEGERS = np.int32([[-7, -1, 0, 3], [7, 2, -2, 5], [2**31 - 1, -(2**31), 100, -100]])
BYTES = np.int8([-128, -3, 0, 5, 127])
KERNEL, DEPTHWISE, WINDOW = numbers(3, 3, 4, 5), numbers(3, 3, 4, 2), numbers(3, 3, 3, 4)
GROUPS = numbers(3, 3, 2, 6)
INDICES = np.int32([[2, 0], [1, 2]])
BATCHES = np.int32([[1, 0, 2], [0, 3, 1]])


def conv_transpose(x, padding, size):
    return tf.nn.conv2d_transpose(x, WINDOW, (2, size, size, 3), 2, padding)


def case(i):
    return tf.switch_case(i, [lambda i=i: tf.constant(ROWS * i) for i in range(4)])


OPS = {
    "one hot": (lambda x: tf.one_hot(x, 4, 2, -1, axis=0), INTEGERS),
    "one hot of flags": (lambda x: tf.one_hot(x, 3, True, False, dtype=tf.bool), INDICES),
    "roll": (lambda x: tf.roll(x, [1, -2, 3], [0, -1, 1]), INTEGERS),
    "abs": (tf.abs, INTEGERS),
    "argmax": (lambda x: tf.argmax(x, 1, tf.int32), INTEGERS),
    "all": (lambda x: tf.reduce_all(x > 0, 1, keepdims=True), INTEGERS),
    "any": (lambda x: tf.reduce_any(x > 0, [0, 1]), INTEGERS),
    "average": (lambda x: tf.nn.avg_pool2d(x, 3, 2, "SAME"), IMAGES),
    "band": (lambda x: tf.linalg.band_part(x, 1, 0), MATRIX),
    "batch matmul": (lambda x, y: tf.matmul(x, y, adjoint_b=True), numbers(2, 3, 4), MATRIX),
    "broadcast": (lambda x: tf.broadcast_to(x, (2, 3, 4)), ROWS),
    "case": (case, np.int32(2)),
    "case beneath zero": (case, np.int32(-1)),
    "case beyond the last": (case, np.int32(9)),
    "cast to bytes": (lambda x: tf.cast(x, tf.uint8), INTEGERS),
    "clip by arrays": (lambda x, y: tf.clip_by_value(x, -tf.abs(y), tf.abs(y)), ROWS, ROWS[::-1]),
    "clip": (lambda x: tf.clip_by_value(x, -0.5, 0.5), ROWS),
    "concat": (lambda x: tf.concat([x, x, 2 * x], -1), ROWS),
    "conv": (lambda x: tf.nn.conv2d(x, KERNEL, 2, "SAME"), IMAGES),
    "conv of groups": (lambda x: tf.nn.conv2d(x, GROUPS, 1, "VALID"), IMAGES),
    "conv with dilations": (lambda x: tf.nn.conv2d(x, KERNEL, 1, "SAME", dilations=2), IMAGES),
    "cumprod": (lambda x: tf.math.cumprod(x, 1, reverse=True), ROWS),
    "cumprod of those before": (lambda x: tf.math.cumprod(x, 0, exclusive=True), ROWS),
    "cumsum": (lambda x: tf.cumsum(x, 1, exclusive=True, reverse=True), INTEGERS[:2]),
    "depthwise": (
        lambda x: tf.nn.depthwise_conv2d(x, DEPTHWISE, (1, 2, 2, 1), "SAME"),
        IMAGES,
    ),
    "elu": (lambda x: tf.nn.elu(tf.cast(x, tf.float64)), ROWS),
    "expand": (lambda x: tf.expand_dims(x, -2), ROWS),
    "fill": (lambda x: tf.fill(tf.shape(x), x[0, 0]), ROWS),
    "finite": (tf.math.is_finite, np.float32([1, np.inf, -np.inf, np.nan, 0])),
    "floor div": (lambda x: x // tf.constant([2, -3, 4, -5]), INTEGERS),
    "floor div of floats": (lambda x: x // 0.3, ROWS),
    "floor mod": (lambda x: x % tf.constant([2, -3, 4, -5]), INTEGERS),
    "floor mod of floats": (lambda x: x % tf.constant([0.3, -0.3, 2, -2]), ROWS),
    "gather": (lambda x, i: tf.gather(x, i, axis=1), ROWS, INDICES),
    "gather nd": (tf.gather_nd, MATRIX, INDICES),
    "gather of batches": (
        lambda x, i: tf.gather(x, i, axis=2, batch_dims=1),
        numbers(2, 3, 4),
        BATCHES,
    ),
    "batch norm": (
        lambda x: tf.nn.batch_normalization(x, ROWS[0], ROWS[1], ROWS[2], ROWS[0], 1e-3),
        np.abs(IMAGES),
    ),
    "invert": (tf.bitwise.invert, INTEGERS),
    "leaky": (lambda x: tf.nn.leaky_relu(tf.cast(x, tf.float64), 0.3), ROWS),
    "left shift": (lambda x: tf.bitwise.left_shift(x, 3), BYTES),
    "log softmax": (tf.nn.log_softmax, ROWS),
    "matmul": (lambda x, y: tf.matmul(x, y, True, True), numbers(4, 3), ROWS.T @ ROWS),
    "matmul of integers": (lambda x: tf.matmul(x, x, transpose_b=True), INTEGERS[:2]),
    "max of booleans": (lambda x: tf.where(x > 0, x > 1, x < -1), INTEGERS),
    "max pool": (lambda x: tf.nn.max_pool2d(x, 3, 2, "SAME"), IMAGES),
    "maximum of bytes": (lambda x: tf.maximum(tf.cast(x, tf.int16), 3), BYTES),
    "mean": (lambda x: tf.reduce_mean(x, (1, 2)), IMAGES),
    "mirror": (lambda x: tf.pad(x, [[1, 1], [0, 2]], "REFLECT"), ROWS),
    "not equal": (lambda x: x != x[::-1], INTEGERS),
    "not equal booleans": (lambda x: (x > 0) != (x > 2), INTEGERS),
    "one number of them": (lambda x: x[1, -1], ROWS),
    "pack": (lambda x: tf.stack([x, x + 1], axis=-1), ROWS),
    "pad": (lambda x: tf.pad(x, [[1, 0], [2, 3]], constant_values=7), INTEGERS),
    "prod": (lambda x: tf.reduce_prod(x, 0), ROWS),
    "range": (lambda x: tf.range(x[0, 3], 20, 4), INTEGERS),
    "relu of long integers": (lambda x: tf.nn.relu(tf.cast(x, tf.int64)), INTEGERS),
    "reverse": (lambda x: tf.reverse(x, [0, -1]), ROWS),
    "right shift": (lambda x: tf.bitwise.right_shift(x, [1, 0, 5, 31]), INTEGERS),
    "right shift of bytes": (lambda x: tf.bitwise.right_shift(x, 3), BYTES),
    "right shift of long integers": (
        lambda x: tf.bitwise.right_shift(tf.cast(x, tf.int64), 3),
        INTEGERS,
    ),
    "right shift without sign": (
        lambda x: tf.bitwise.bitwise_and(tf.bitwise.right_shift(x, 7), 2**25 - 1),
        INTEGERS,
    ),
    "round": (tf.round, np.float32([0.5, 1.5, -0.5, 2.5])),
    "scatter": (
        lambda x, i: tf.tensor_scatter_nd_update(x, i[:, :1], x[:2]),
        MATRIX,
        INDICES,
    ),
    "scatter max": (lambda x, i: tf.tensor_scatter_nd_max(x, i, [1.0, 2.0]), MATRIX, INDICES),
    "scatter sub": (lambda x, i: tf.tensor_scatter_nd_sub(x, i, [1.0, 2.0]), MATRIX, INDICES),
    "scatter to zeros": (lambda i: tf.scatter_nd(i, [1, 2], (3, 3)), INDICES),
    "segments": (
        lambda x, i: tf.math.unsorted_segment_prod(x, i, 5),
        numbers(4, 2),
        np.int32([2, -1, 2, 0]),
    ),
    "segments' least": (
        lambda x, i: tf.math.unsorted_segment_min(x, i, 3),
        INTEGERS,
        np.int32([2, 0, 2]),
    ),
    **{
        f"{method} pixels of {size}": (
            lambda x, size=size, method=method: tf.image.resize(x, size, method),
            IMAGES,
        )
        for method in ("bilinear", "nearest")
        for size in ((12, 24), (5, 7), (9, 3))
    },
    "select rows": (
        lambda x: tf.raw_ops.Select(condition=[True, False, True], x=x, y=-x),
        ROWS,
    ),
    "select of short integers": (lambda x: tf.where(x > 0, x, x[::-1]), np.int16(BYTES)),
    "shape": (lambda x: tf.shape(x, tf.int64), ROWS),
    "slice": (lambda x: tf.slice(x, [1, 0], [-1, 2]), ROWS),
    "slice from a number": (lambda x, i: tf.slice(x, [i[1, 0], 0], [2, 3]), MATRIX, INDICES),
    "softmax": (tf.nn.softmax, ROWS),
    "split": (lambda x: tf.split(x, 2, axis=-1), ROWS),
    "split by sizes": (lambda x: tf.split(x, [1, 3], axis=1), ROWS),
    "squared difference": (tf.math.squared_difference, ROWS, ROWS[::-1]),
    "squeeze": (lambda x: tf.squeeze(x[:1, :, None]), ROWS),
    "strides": (lambda x: x[::-2, None, ..., 3:0:-1], ROWS),
    "strides from a number": (lambda x, i: x[i[0, 1] :, i[0, 0]], MATRIX, INDICES),
    "tile": (lambda x: tf.tile(x, [2, 1]), ROWS),
    "top": (lambda x: tf.math.top_k(x, 3), np.float32([1, 5, 2, 5, 3])),
    "transpose": (lambda x: tf.transpose(tf.transpose(x, (3, 0, 1, 2)), (0, 2, 1, 3)), IMAGES),
    "transposed conv": (lambda x: conv_transpose(x, "SAME", 12), IMAGES),
    "transposed conv of odd sizes": (lambda x: conv_transpose(x, "SAME", 11), IMAGES),
    "transposed conv without padding": (lambda x: conv_transpose(x, "VALID", 13), IMAGES),
    "truncated mod": (lambda x: tf.math.floormod(-x, 7) + tf.truncatemod(x, 7), INTEGERS),
    "blocks to features": (lambda x: tf.nn.space_to_depth(x, 2), IMAGES),
    "features to blocks": (lambda x: tf.nn.depth_to_space(x, 2), IMAGES),
    "integers to blocks": (lambda x: tf.nn.depth_to_space(tf.cast(x, tf.int32), 2), 9 * IMAGES),
    "unpack": (lambda x: tf.unstack(x, axis=-1)[1:3], ROWS),
}


def made(concrete, opset=NEWEST, **options):
    """A model, which has passed the checker."""
    model = models.model(concrete, opset, **options)
    written = saving.serialized(model)
    package.checker.check_model(package.load_from_string(written), full_check=True)
    return model, written


@pytest.mark.parametrize("opset", [18, NEWEST])
@pytest.mark.parametrize("name", OPS)
def test_ops(name, opset):
    fun, *arrays = OPS[name]
    of_ops = flat_entry(fun, arrays)
    _, written = made(of_ops.concrete, opset)
    found = onnx.run(written, of_ops)
    for output, expected in zip(of_ops.outputs, of_ops.reference(*of_ops.samples), strict=True):
        assert found[output].dtype == expected.dtype
        np.testing.assert_allclose(found[output], expected, 1e-5, 1e-5)


def mlp(params, x):
    return jnp.tanh(x @ params["w"] + params["b"]) @ params["w"].T


def loop(params, x):
    def step(carry, row):
        return 0.5 * carry + row @ params["w"], carry.sum()

    return lax.scan(step, params["b"], x)


def search(params, x):
    return lax.while_loop(lambda y: y.sum() < 100, lambda y: 2 * jnp.abs(y) + 1, x @ params["w"])


def branch(params, x):
    return lax.cond(x.sum() > 0, lambda: x @ params["w"], lambda: x - params["b"])


def branches(params, x):
    return lax.switch(jnp.int32(x[0, 0]), [jnp.sin, jnp.cos, jnp.tanh, jnp.exp], x)


def called(params, x):
    normal = jax.jit(lambda x: (x - x.mean()) / x.std() + params["b"])
    return normal(normal(x) @ params["w"]), jax.random.normal(jax.random.key(1), (3,))


PROGRAMS = [mlp, loop, search, branch, branches, called]


@pytest.mark.parametrize("opset", [18, NEWEST])
@pytest.mark.parametrize("batch", ["3", "b"])
@pytest.mark.parametrize("fun", PROGRAMS)
def test_programs(fun, batch, opset):
    params = {"w": MATRIX, "b": ROWS[0]}
    shapes = [f"{batch}, _"] if batch == "b" else None
    program = entry(fun, (ROWS,), ONNX, params=params, polymorphic_shapes=shapes)
    _, written = made(program.concrete, opset, dims=program.sizes())
    verify("the model", program, onnx.run(written, program), None)


def kinds(model):
    """How many nodes of each kind a model has, in all of its graphs."""
    return collections.Counter(
        node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph)
    )


def model_of(fun, *args, **options):
    program = entry(fun, args, ONNX, **options)
    return made(program.concrete, dims=program.sizes())[0]


# Functions of TensorFlow whose maps compute the axes of ops, or their sizes, by other ops.
MAPPED = {
    "layer norm": lambda x: (x - tf.reduce_mean(x, -1)) / tf.math.reduce_std(x, -1),
    "joined": lambda x: tf.concat([x, x], 0),
    "convolved": lambda x: tf.nn.conv1d(x[None, :, None], KERNEL[0, :, :1], 1, "SAME")[0],
    "gathered": lambda x: tf.gather(x, [3, 0]),
    "scattered": lambda x: tf.tensor_scatter_nd_update(x, [[1]], [2.0]),
    "of segments": lambda x: tf.math.unsorted_segment_sum(x, [0, 1, 1, 0], 3),
    "stacked": lambda x: tf.stack(tf.split(x, 2), 1),
    "cut": lambda x: tf.cumsum(x, reverse=True)[1::2],
    "greatest": lambda x: tf.math.top_k(x, 2).values,
}  # fmt: skip


@pytest.mark.parametrize("name", MAPPED)
def test_maps_of_functions_of_tensorflow(name):
    mapped = call_tf(MAPPED[name])
    for x in (ROWS[0], ROWS, numbers(2, 3, 4)):
        program = entry(mapped, (x,), ONNX)
        written = saving.serialized(models.model(program.concrete, NEWEST))
        package.checker.check_model(package.load_from_string(written), full_check=True)
        verify("the model", program, onnx.run(written, program), None)
        mapped = jax.vmap(mapped)


def test_names_and_symbolic_sizes():
    def fun(x, y):
        return {"both": jnp.concatenate([x, x]), "flat": x.reshape(-1), "sum": x[:, 0] + 1j * y}

    model = model_of(fun, ROWS, ROWS[:, 0], polymorphic_shapes=["b, _", "b"])
    values = [*model.graph.inputs, *model.graph.outputs]
    sizes = {x.name: [n if isinstance(n, int) else n.value for n in x.shape] for x in values}
    assert sizes == {
        "x": ["b", 4],
        "y": ["b"],
        "result_both": ["2*b", 4],
        "result_flat": ["4*b"],
        "result_sum": ["b", 2],
    }


def test_an_output_that_is_an_input_and_another_output():
    model = model_of(lambda x: (x, x + 1, x + 1, jnp.float32(3)), ROWS)
    names = [x.name for x in (*model.graph.inputs, *model.graph.outputs)]
    assert names == ["x", *(f"result_{i}" for i in range(4))]


def test_layers_are_single_nodes():
    model = model_of(lambda x: jax.nn.relu(x @ MATRIX + ROWS[0]) @ MATRIX, ROWS)
    assert kinds(model) == {"Gemm": 1, "Relu": 1, "MatMul": 1}


def test_images_are_transposed_at_the_ends_alone():
    def fun(x):
        for _ in range(3):
            y = lax.conv_general_dilated(
                x, numbers(3, 3, 4, 4), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(y * 2 + ROWS[0]) + x
        return x

    assert kinds(model_of(fun, IMAGES))["Transpose"] == 2


def test_a_loop_that_counts_computes_no_condition():
    def fun(x):
        return lax.fori_loop(0, 50, lambda i, y: jnp.sin(y) + ROWS * x, x)

    model = model_of(fun, ROWS)
    (node,) = [node for node in model.graph if node.op_type == "Loop"]
    body = node.attributes["body"].as_graph()
    # The number of the iteration, the condition and what changes.
    assert len(body.inputs) == 3
    assert kinds(model)["Less"] == 0
    assert node.inputs[1].const_value.numpy().item() is True


def test_equal_ops_and_constants_are_one():
    model = model_of(lambda x: (jnp.sin(x + 1), jnp.cos(x + 1), jnp.sin(x + 1) * 1), ROWS)
    assert kinds(model)["Sin"] == kinds(model)["Add"] == 1


def test_a_weight_in_two_orders_is_stored_once():
    wide = numbers(600, 600)
    model = model_of(lambda p, x: jnp.tanh(x @ p) @ p.T, numbers(2, 600), params=wide)
    sizes = [x.const_value.nbytes for x in model.graph.initializers.values()]
    assert max(sizes) == sum(sizes) == wide.nbytes


def test_weights_beside_the_model(tmp_path):
    params = {"w": MATRIX, "b": ROWS[0]}
    program = entry(mlp, (ROWS,), ONNX, params=params)
    path = tmp_path / "model.onnx"
    saving.save(models.model(program.concrete, NEWEST), path, external_data=True)
    assert {x.name for x in tmp_path.iterdir()} == {"model.onnx", "model.onnx.data"}
    package.checker.check_model(str(path), full_check=True)
    verify("the model", program, onnx.run(path, program), None)


def test_what_is_lacking_is_named():
    concrete = flat_entry(lambda x: tf.linalg.qr(x)[1], [MATRIX]).concrete
    with pytest.raises(UnsupportedError, match="is Qr, which lowering does not write to ONNX"):
        models.model(concrete, NEWEST)
    concrete = flat_entry(tf.bitwise.bitwise_xor, [INTEGERS, INTEGERS]).concrete
    with pytest.raises(UnsupportedError, match="is BitwiseXor, which ONNX has since opset 18"):
        models.model(concrete, 17)


def test_a_path_for_the_model(tmp_path):
    params = {"w": MATRIX, "b": ROWS[0]}
    path = tmp_path / "new" / "model.onnx"
    assert onnx.to_onnx(mlp, (ROWS,), path, params=params).file == path
    assert path.read_bytes() == onnx.to_onnx(mlp, (ROWS,), params=params)
    with pytest.raises(FileExistsError):
        onnx.to_onnx(mlp, (ROWS,), params=params, path=path)


def test_weights_are_beside_the_model_where_one_message_does_not_hold_them(tmp_path, monkeypatch):
    wide = numbers(600, 600)
    path = tmp_path / "model.onnx"
    monkeypatch.setattr(saving.limits, "LARGEST", wide.nbytes - 1)
    with pytest.raises(ValueError, match=r"more than 2 GB.*with `path` they are written to a file"):
        onnx.to_onnx(lambda w, x: x @ w, (wide[:2],), params=wide)
    onnx.to_onnx(lambda w, x: x @ w, (wide[:2],), params=wide, path=path)
    sizes = {x.name: x.stat().st_size for x in tmp_path.iterdir()}
    assert sizes["model.onnx.data"] >= wide.nbytes and sizes["model.onnx"] < 2000
    package.checker.check_model(str(path), full_check=True)


def test_a_failed_export_leaves_no_weights(tmp_path):
    with pytest.raises(Exception, match="the ONNX model differs from JAX"):
        onnx.to_onnx(
            lambda x: jnp.tanh(x @ MATRIX) / 3,
            (ROWS,),
            path=tmp_path / "model",
            external_data=True,
            tolerance=0.0,
        )
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="external_data needs a path"):
        onnx.to_onnx(jnp.sin, (ROWS,), external_data=True)


def test_weights_of_the_model_before_are_removed(tmp_path):
    path, beside = tmp_path / "model.onnx", tmp_path / "model.onnx.data"
    wide = numbers(20, 20)

    def write(**options):
        onnx.to_onnx(
            lambda w, x: jnp.tanh(x @ w) / 3,
            (wide[:2],),
            path,
            params=wide,
            overwrite=True,
            **options,
        )

    write(external_data=True)
    write(external_data=True)
    assert beside.exists()
    with pytest.raises(VerificationError):
        write(tolerance=0.0)
    assert beside.exists()
    write()
    assert not beside.exists()
    beside.write_text("weights of something else")
    write()
    assert beside.exists()
    path.write_text("no model")
    write()
    assert beside.exists()


def test_an_opset_is_a_whole_number(tmp_path):
    for opset in (17.0, "17", True, 16):
        with pytest.raises(ValueError, match=f"opset is a number from 17 to .*, not {opset!r}"):
            onnx.to_onnx(jnp.sin, (ROWS,), opset=opset)
