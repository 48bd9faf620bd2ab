"""Programs for the devices of a mesh, some of which JAX cannot run on a CPU."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

import lowering
from harnesses.meshes import mesh, on_mesh
from tests import helpers
from tests.helpers import op_counts

# A mesh of more devices than JAX has here.
MANY = AbstractMesh((64, 4), ("x", "y"), (AxisType.Auto,) * 2)
X = np.arange(32, dtype=np.float32).reshape(8, 4)
W = np.ones((4, 3), np.float32)


graph_of = functools.partial(helpers.graph_of, target="tf")


def test_no_device_is_needed():
    def fun(x):
        return lax.psum(x, "x") / lax.axis_size("y") + lax.axis_index("y")

    x = np.arange(512, dtype=np.float32).reshape(64, 8)
    converted = lowering.convert(
        jax.shard_map(fun, mesh=MANY, in_specs=P("x", "y"), out_specs=P(None, "y")), target="tf"
    )
    expected = x.sum(0, keepdims=True) / 4 + np.repeat(np.arange(4), 2)
    np.testing.assert_array_equal(converted(x), expected)


def test_what_all_devices_have_is_computed_once():
    def fun(x, w):
        return x @ (w @ w.T), lax.psum(x, "x")[0] @ w

    run = jax.shard_map(fun, mesh=MANY, in_specs=(P("x"), P()), out_specs=(P("x"), P()))
    graph = graph_of(run, np.ones((128, 4), np.float32), W)
    products = [op for op in graph.get_operations() if "MatMul" in op.type]
    shapes = [op.outputs[0].shape.as_list() for op in products]
    assert [4, 4] in shapes and [1, 3] in shapes
    assert op_counts(graph)["BroadcastTo"] == 0


def test_a_gathered_array_is_there_already():
    def fun(x):
        return lax.all_gather(x, "x", tiled=True)

    run = jax.shard_map(fun, mesh=MANY, in_specs=P("x"), out_specs=P(), check_vma=False)
    counts = op_counts(graph_of(run, np.ones((128, 4), np.float32)))
    assert set(counts) <= {"Placeholder", "Const", "Reshape", "PreventGradient", "Identity"}


def test_gradient_tape():
    def loss(x, w):
        return lax.pmean(jnp.sum(jnp.sin(x @ w) ** 2), "x")

    run = on_mesh(loss, (P("x"), P()), P())
    converted = lowering.convert(run)
    x, w = tf.Variable(X), tf.Variable(W)
    with tf.GradientTape() as tape:
        value = converted(x, w)
    gradients = tape.gradient(value, [x, w])
    for actual, expected in zip(gradients, jax.grad(run, (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_symbolic_dimensions():
    def fun(x):
        return x - lax.pmean(x.mean(0), "x"), x.shape[0] * lax.axis_index("x")[None]

    run = jax.shard_map(
        fun,
        mesh=AbstractMesh((2,), ("x",), (AxisType.Auto,)),
        in_specs=P("x"),
        out_specs=(P("x"), P("x")),
    )
    converted = lowering.convert(run, target="tf", polymorphic_shapes=["(2*b, c)"])
    for rows in (2, 6):
        centered, sizes = converted(X[:rows])
        np.testing.assert_allclose(centered, X[:rows] - X[:rows].mean(0), rtol=1e-6)
        np.testing.assert_array_equal(sizes, [0, rows // 2])


def test_mesh_of_the_context():
    with jax.set_mesh(mesh(x=2, y=4)):
        run = jax.shard_map(
            lambda x: lax.psum(x, "x") + jnp.ones(4), in_specs=P("x"), out_specs=P()
        )
        np.testing.assert_array_equal(lowering.convert(run)(X), X[:4] + X[4:] + 1)


def test_callbacks_are_for_one_device():
    shapes = []

    def host(x):
        shapes.append(x.shape)
        return np.asarray(x) * 2

    def fun(x):
        return jax.pure_callback(host, x, x)

    run = on_mesh(fun, P("x", "y"), P("x", "y"))
    np.testing.assert_array_equal(lowering.convert(run)(X), X * 2)
    assert shapes == [(4, 1)] * 8


def test_nan_is_an_extremum():
    x = np.array([1, np.nan, 3, np.nan, np.nan, 2, 0, 5], np.float32)
    run = on_mesh(lambda x: (lax.pmax(x, "y"), lax.pmin(x, "y")), P(("x", "y")), P("x"))
    for result in lowering.convert(run)(x):
        np.testing.assert_array_equal(result, [np.nan, np.nan])


def test_pbroadcast():
    run = on_mesh(lambda x: lax.pbroadcast(x, "x", 1), P("x"), P(), check_vma=False)
    np.testing.assert_array_equal(lowering.convert(run)(X), X[4:])


@pytest.mark.skipif(jax.__version_info__ < (0, 12), reason="JAX 0.12 has it")
def test_pbroadcast_from_a_computed_device():
    def fun(x, source):
        return lax.pbroadcast(x, "x", source)

    run = on_mesh(fun, (P("x"), P()), P(), check_vma=False)
    np.testing.assert_array_equal(lowering.convert(run)(X, np.int32(1)), X[4:])


def test_ragged_all_to_all():
    """JAX has no such collective on a CPU, so that the expected result is written out."""

    def fun(*args):
        return lax.ragged_all_to_all(*args, axis_name="x")

    mesh_ = AbstractMesh((2,), ("x",), (AxisType.Auto,))
    run = jax.shard_map(fun, mesh=mesh_, in_specs=P("x"), out_specs=P("x"))
    # The first device sends one row to itself and two to the other, which sends three and one.
    operand = np.arange(1, 9).reshape(8, 1)
    output = np.zeros((12, 1), np.int64)
    offsets, sizes = np.array([0, 1, 0, 3]), np.array([1, 2, 3, 1])
    places, received = np.array([0, 0, 1, 2]), np.array([1, 3, 2, 1])
    result = lowering.convert(run)(operand, output, offsets, sizes, places, received)
    np.testing.assert_array_equal(np.ravel(result), [1, 5, 6, 7, 0, 0, 2, 3, 8, 0, 0, 0])


@pytest.mark.filterwarnings("ignore:jax.lax.psend")
def test_an_exchange_of_accelerators_is_refused():
    def fun(x):
        lax.psend(x, "x", [(0, 1)])
        return x

    run = on_mesh(fun, P("x"), P("x"), check_vma=False)
    with pytest.raises(lowering.UnsupportedError, match=r"shard_map.*psend at .*use ppermute"):
        lowering.convert(run)(X)


def test_an_error_names_the_line():
    """The line that cannot be lowered, not that of `shard_map`."""

    def fun(x):
        return jax.ffi.ffi_call("unknown", jax.ShapeDtypeStruct(x.shape, x.dtype))(x)  # Here.

    run = on_mesh(fun, P("x"), P("x"), check_vma=False)
    line = fun.__code__.co_firstlineno + 1
    with pytest.raises(lowering.UnsupportedError, match=f"test_shard_map.py:{line}"):
        lowering.convert(run)(X)
