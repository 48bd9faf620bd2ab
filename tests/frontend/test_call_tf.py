"""TensorFlow functions called by JAX: `lowering.call_tf`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering import call_tf, convert
from tests.frontend.calling import TRANSFORMATIONS, X, fun_jax, fun_tf, same, summed, warned
from tests.helpers import MODES, graph_of, in_mode, op_counts


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_of_jax(name):
    transform = TRANSFORMATIONS[name]
    same(transform(call_tf(fun_tf))(X), transform(fun_jax)(X))


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_transformations_of_a_round_trip(name):
    transform = TRANSFORMATIONS[name]
    same(transform(call_tf(convert(fun_jax)))(X), transform(fun_jax)(X))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", ["tf", "xla", "portable", "tflite", "tfjs", "onnx"])
@pytest.mark.parametrize("name", ["none", "grad", "jvp", "vmap", "scan", "jit_grad_vmap"])
def test_convert_calls_the_function_itself(name, target, mode):
    transform = TRANSFORMATIONS[name]
    converted = convert(transform(call_tf(fun_tf)), target=target)
    actual = jax.tree.map(lambda y: y.numpy(), in_mode(converted, mode)(X))
    same(actual, jax.tree.map(np.asarray, transform(fun_jax)(X)))


def test_the_ops_of_the_function_are_in_the_graph():
    graph = graph_of(call_tf(tf.math.lgamma), X)
    assert op_counts(graph)["Lgamma"] == 1


@pytest.mark.parametrize("target, checks", [("tf", 1), ("tfjs", 0)])
def test_declared_shapes_are_checked_where_they_are_not_known(target, checks):
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    known = call_tf(lambda x: x + 1, output_shape_dtype=shape)
    unknown = call_tf(lambda x: tf.boolean_mask(x, x > -9), output_shape_dtype=shape)
    assert op_counts(graph_of(known, X, target=target))["EnsureShape"] == 0
    graph = graph_of(lambda x: unknown(x) + x, X, target=target)
    assert op_counts(graph)["EnsureShape"] == checks
    assert graph.outputs[0].shape == (3,)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: jax.grad(lambda x: f(x, x).sum()),
        lambda f: jax.grad(lambda x: f(x, lax.stop_gradient(x)).sum()),
        lambda f: lambda x: jax.jvp(lambda x: f(x, x), (x,), (x,)),
        lambda f: jax.grad(lambda x: jax.jvp(f, (x, x), (x, 2 * x))[1].sum()),
        lambda f: jax.hessian(lambda x: f(x, x).sum()),
        lambda f: jax.vmap(jax.grad(jax.grad(lambda x: f(x, x)))),
    ],
    ids=["grad", "stop_gradient", "jvp", "grad_jvp", "hessian", "vmap_grad_grad"],
)
def test_one_value_as_several_operands(transform, mode):
    """Each operand has a derivative of its own, though one tensor is all of them."""
    expected = jax.tree.map(np.asarray, transform(lambda x, y: x**3 * jnp.sin(y))(X))
    same(transform(call_tf(lambda x, y: x**3 * tf.sin(y)))(X), expected)
    converted = convert(transform(call_tf(lambda x, y: x**3 * tf.sin(y))))
    same(jax.tree.map(lambda y: y.numpy(), in_mode(converted, mode)(X)), expected)


def test_gradient_of_a_converted_call():
    converted = convert(call_tf(fun_tf))
    x = tf.constant(X)
    for mode in MODES:

        def gradient(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = converted(x)
            return tape.gradient(y, x)

        same(in_mode(gradient, mode)(x).numpy(), np.asarray(jax.grad(summed(fun_jax))(X)))


class TestValues:
    """What goes in and out."""

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_pytrees(self, jit):
        def fun(params, pair, *, scale):
            a, (b, none) = params["a"], pair
            assert none is None
            return {"sum": [a + b * scale, (b,)], "none": None}

        args = {"a": X}, (X * 2, None)
        same(jit(call_tf(fun))(*args, scale=X), jit(fun)(*args, scale=X))

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_no_arguments_and_no_results(self, jit):
        same(jit(call_tf(lambda: tf.ones(2)))(), jnp.ones(2))
        with warned(0):
            assert jit(call_tf(lambda x: None))(X) is None
            assert jit(call_tf(lambda: ()))() == ()

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_results_that_are_no_tensors(self, jit):
        variable = tf.Variable([1.0, 2.0])
        results = jit(call_tf(lambda: (1, 2.5, True, X, variable, [np.int32(3)])))()
        same(
            results,
            (jnp.int32(1), jnp.float32(2.5), jnp.bool_(True), X, variable.numpy(), [jnp.int32(3)]),
        )

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_containers_of_a_module(self, jit):
        module = tf.Module()
        module.params = {"w": [tf.Variable(2.0)], "b": (tf.Variable(1.0),)}
        results = jit(call_tf(lambda: module.params))()
        same(results, {"w": [jnp.float32(2)], "b": (jnp.float32(1),)})

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize(
        "dtype",
        "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 complex64".split(),
    )
    @pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1)])
    def test_dtypes(self, jit, dtype, shape):
        x = jnp.ones(shape, dtype)
        same(jit(call_tf(lambda x: x))(x), x)

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize("dtype", ["int64", "uint64", "float64", "complex128"])
    def test_64_bits(self, jit, dtype):
        x = np.ones(3, dtype)
        short = jax.dtypes.canonicalize_dtype(dtype)
        assert jit(call_tf(lambda x: x + 1))(x).dtype == short
        assert jit(call_tf(lambda: tf.ones(3, dtype)))().dtype == short
        with jax.enable_x64(True):
            same(jit(call_tf(lambda x: x + 1))(x), jnp.asarray(x + 1))
            assert jit(call_tf(lambda: tf.ones(3, dtype)))().dtype == dtype

    def test_python_scalars_and_tensors(self):
        results = call_tf(lambda *x: x)(
            1, 2.0, True, tf.constant([1.0]), tf.Variable(2), np.ones(2)
        )
        assert [x.dtype for x in results] == [
            "int32",
            "float32",
            "bool",
            "float32",
            "int32",
            "float32",
        ]

    def test_memory_is_shared(self):
        x = jnp.ones((256, 256))
        seen = []

        def look(x):
            seen.append(jax.dlpack.from_dlpack(x).unsafe_buffer_pointer())
            return x

        y = call_tf(look)(x)
        assert seen == [x.unsafe_buffer_pointer()] == [y.unsafe_buffer_pointer()]

    def test_arrays_of_several_devices(self):
        devices = jax.devices()[:2]
        assert len(devices) == 2
        mesh = jax.sharding.Mesh(np.array(devices), "i")
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
        x = jax.device_put(np.arange(4, dtype=np.float32), sharding)
        same(call_tf(lambda x: x + 1)(x), x + 1)


class TestDerivatives:
    """What TensorFlow's derivatives are to JAX."""

    def test_integers_and_booleans(self):
        def fun(x, i, flag):
            return tf.where(flag, x, 0.0) * tf.cast(i, tf.float32), i + 1

        args = X, np.int32([1, 2, 3]), np.array([True, False, True])

        def loss(*args):
            y, i = call_tf(fun)(*args)
            assert i.dtype == np.int32
            return y.sum()

        for jit in (lambda f: f, jax.jit):
            gradients = jit(jax.grad(loss, argnums=(0, 1, 2), allow_int=True))(*args)
            same(gradients[0], jnp.float32([1, 0, 3]))
            assert gradients[1].dtype == gradients[2].dtype == jax.dtypes.float0
        with pytest.raises(TypeError, match="allow_int"):
            jax.grad(loss, argnums=1)(*args)

    def test_an_argument_that_is_not_used(self):
        gradients = jax.grad(lambda x, y: call_tf(lambda x, y: x * 2)(x, y).sum(), (0, 1))(X, X)
        same(gradients, (X * 0 + 2, X * 0))

    def test_none_among_the_arguments(self):
        gradients = jax.grad(lambda tree: call_tf(lambda t: t["x"] ** 2)(tree).sum())(
            {"x": X, "none": None}
        )
        same(gradients, {"x": 2 * X, "none": None})

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    @pytest.mark.parametrize("shape", [(), (2,)])
    def test_complex_numbers(self, jit, shape):
        z = np.full(shape, 1 + 2j, np.complex64)

        def in_tf(z):
            return z * z * tf.math.conj(z) + tf.complex(tf.math.real(z), 0.0)

        def in_jax(z):
            return z * z * jnp.conj(z) + lax.complex(jnp.real(z), jnp.zeros(shape))

        for transform in (
            lambda f: jax.grad(lambda z: jnp.abs(f(z)).sum()),
            lambda f: lambda z: jax.jvp(f, (z,), (z * 1j,)),
            lambda f: lambda z: jax.vjp(f, z)[1](z * 1j),
        ):
            same(jit(transform(call_tf(in_tf)))(z), jit(transform(in_jax))(z))

    def test_slices_as_a_gradient(self):
        table = np.ones((4, 3), np.float32)
        indices = np.int32([1, 1, 3])
        gather = call_tf(lambda table: tf.gather(table, indices))
        expected = jax.grad(lambda table: table[indices].sum())(table)
        for jit in (lambda f: f, jax.jit):
            same(jit(jax.grad(lambda table: gather(table).sum()))(table), expected)

    @pytest.mark.parametrize(
        "name", ["grad", "jit_grad", "vmap_grad", "grad_vmap", "jit_grad_vmap"]
    )
    def test_custom_gradients(self, name):
        @tf.custom_gradient
        def fun(x):
            return x**2, lambda g: g * 100.0

        expected = np.full(3, 100, np.float32)
        same(TRANSFORMATIONS[name](call_tf(fun))(X), expected)
        in_function = tf.function(fun, autograph=False)
        same(TRANSFORMATIONS[name](call_tf(in_function))(X), expected)

    @pytest.mark.parametrize("kind", ["custom_vjp", "custom_jvp"])
    @pytest.mark.parametrize("name", ["grad", "jit_grad", "vmap_grad", "grad_vmap"])
    def test_custom_derivatives_of_jax_in_a_round_trip(self, kind, name):
        if kind == "custom_vjp":
            fun = jax.custom_vjp(lambda x: x**2)
            fun.defvjp(lambda x: (x**2, None), lambda _, g: (g * 100,))
        else:
            fun = jax.custom_jvp(lambda x: x**2)
            fun.defjvp(lambda x, t: (x[0] ** 2, 100 * t[0]))
        same(TRANSFORMATIONS[name](call_tf(convert(fun)))(X), np.full(3, 100, np.float32))

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_control_flow_of_tensorflow(self, jit):
        def in_tf(x):
            return tf.while_loop(
                lambda i, y: i < 3,
                lambda i, y: (i + 1, tf.sin(y) * x),
                (0, x),
                maximum_iterations=3,
            )[1]

        def in_jax(x):
            return lax.fori_loop(0, 3, lambda _, y: jnp.sin(y) * x, x)

        same(jit(jax.grad(summed(call_tf(in_tf))))(X), jax.grad(summed(in_jax))(X))

    def test_operands_that_a_map_shares(self):
        def loss(f):
            return lambda w, x: jax.vmap(f, (None, 0))(w, x).sum()

        w, x = np.float32([1, 2]), np.float32([[3, 4], [5, 6], [7, 8]])
        in_tf = call_tf(lambda w, x: tf.sin(w * x))
        for transform in (
            lambda f: jax.grad(f, (0, 1)),
            lambda f: jax.jit(jax.hessian(f, (0, 1))),
            lambda f: jax.jacrev(jax.jacrev(f)),
        ):
            expected = transform(loss(lambda w, x: jnp.sin(w * x)))(w, x)
            same(transform(loss(in_tf))(w, x), expected)

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_what_has_no_gradient(self, jit):
        fun = call_tf(lambda x: tf.raw_ops.PreventGradient(input=x, message="not this"))
        same(jit(fun)(X), X)
        with pytest.raises(LookupError, match=r"not this.*tf\.custom_gradient"):
            jit(jax.grad(summed(fun)))(X)
        without = call_tf(convert(jnp.sin, with_gradient=False))
        with pytest.raises(LookupError, match=r"with_gradient=False.*with_gradient=True"):
            jit(jax.grad(summed(without)))(X)


class TestCompiling:
    """What is compiled, and what runs by a callback."""

    def test_a_function_that_xla_compiles_is_a_part_of_the_program(self):
        with warned(0):
            text = jax.jit(lambda x: jnp.cos(call_tf(tf.sin)(x))).lower(X).as_text()
        assert "stablehlo.sine" in text and "stablehlo.cosine" in text
        assert "callback" not in text

    def test_strings_run_by_a_callback(self):
        fun = call_tf(lambda x: tf.strings.length(tf.strings.as_string(tf.cast(x, tf.int32))))
        expected = np.int32([1, 2, 3])
        x = np.float32([1, 22, 333])
        same(fun(x), expected)
        with warned(1):
            same(jax.jit(fun)(x), expected)
        with warned(0):
            same(jax.jit(jax.vmap(fun))(x), expected)
            same(lax.map(fun, x), expected)
        same(jax.vmap(fun)(x), expected)
        pure = call_tf(fun.__wrapped__, has_side_effects=False)
        with warned(1):
            same(jax.jit(pure)(x), expected)

    def test_the_gradient_of_a_callback(self):
        def fun(x):
            return tf.numpy_function(lambda y: y, [x], tf.float32) * 0 + x * x

        wrapped = call_tf(lambda x: tf.ensure_shape(fun(x), x.shape))
        with warned(1):
            same(jax.jit(jax.grad(summed(wrapped)))(X), 2 * X)

    def test_a_shape_that_depends_on_values(self):
        x = np.int32([1, 2])
        fun = lambda x: x[x[0] : 5]  # noqa: E731
        same(call_tf(fun)(x), x[1:])
        with pytest.raises(ValueError, match="output_shape_dtype"):
            jax.jit(call_tf(fun))(x)
        declared = call_tf(fun, output_shape_dtype=jax.ShapeDtypeStruct((1,), np.int32))
        with warned(1):
            same(jax.jit(declared)(x), x[1:])
        with pytest.raises((RuntimeError, ValueError), match="not compatible with expected"):
            jax.block_until_ready(jax.jit(declared)(np.int32([0, 2])))

    def test_branches_of_different_shapes(self):
        x = np.int32([1, 2])
        fun = lambda x: tf.cond(x[0] >= 0, lambda: x, lambda: x[1:])  # noqa: E731
        same(call_tf(fun)(x), x)
        with pytest.raises(ValueError, match="output_shape_dtype"):
            jax.jit(call_tf(fun))(x)
        same(jax.jit(call_tf(fun, output_shape_dtype=x))(x), x)

    def test_a_function_that_runs_op_by_op_alone(self):
        fun = lambda x: x.numpy() + 1  # noqa: E731
        same(call_tf(fun)(X), X + 1)
        same(jax.vmap(call_tf(fun))(X), X + 1)
        with warned(1):
            same(jax.jit(call_tf(fun, output_shape_dtype=X))(X), X + 1)
        declared = call_tf(fun, output_shape_dtype=X[0])
        same(jax.jit(jax.vmap(declared))(X), X + 1)

    def test_an_error_of_the_function_is_not_hidden(self):
        def fun(x):
            raise KeyError("mine")

        for jit in (lambda f: f, jax.jit, jax.vmap):
            with pytest.raises(KeyError, match="mine"):
                jit(call_tf(fun))(X)

    def test_it_is_traced_once(self):
        calls = []
        fun = call_tf(lambda x: calls.append(1) or tf.sin(x))
        for _ in range(3):
            jax.jit(lambda x: fun(x) + fun(x))(X)
        assert len(calls) == 1


def test_on_several_devices():
    devices = jax.devices()[:2]
    mesh = jax.make_mesh((2,), ("i",), (jax.sharding.AxisType.Auto,), devices=devices)
    spec = jax.sharding.PartitionSpec("i")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    x = np.arange(4, dtype=np.float32)

    def sharded(f):
        return jax.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec)

    for transform in (
        lambda f: jax.jit(f, in_shardings=sharding, out_shardings=sharding),
        lambda f: jax.jit(sharded(f)),
        lambda f: jax.grad(summed(sharded(f))),
        lambda f: lambda x: jax.pmap(f, devices=devices[:2])(x.reshape(2, 2)),
    ):
        same(transform(call_tf(fun_tf))(x), transform(fun_jax)(x))


def test_a_transpose_that_jax_does_not_know():
    with pytest.raises(NotImplementedError, match=r"jax\.vjp"):
        jax.linear_transpose(call_tf(lambda x: x * 2), X)(X)
    same(
        jax.linear_transpose(lambda t: jax.jvp(call_tf(fun_tf), (X,), (t,))[1], X)(X),
        jax.vjp(fun_jax, X)[1](X),
    )


class TestEffects:
    """Calls that do something beside returning results."""

    def test_calls_that_have_to_run(self):
        seen = []

        def note(x):
            tf.py_function(lambda y: seen.append(float(y)), [x], [])
            return x + 1

        def program(x, **options):
            call_tf(note, **options)(x)
            return x

        jax.jit(program)(np.float32(1))
        jax.effects_barrier()
        assert seen == [1]
        jax.jit(lambda x: program(x, has_side_effects=False))(np.float32(2))
        jax.effects_barrier()
        assert seen == [1]

    def test_what_does_nothing_else_is_no_effect(self):
        """JAX may leave out such a call, and calls a program without effects far faster."""
        w = tf.Variable(2.0)
        for fun in (fun_tf, lambda x: x * w, lambda x: tf.strings.length(tf.strings.as_string(x))):
            assert not jax.make_jaxpr(call_tf(fun))(X).effects
            assert not jax.make_jaxpr(call_tf(tf.function(fun)))(X).effects
        for fun in (lambda x: tf.print(x), lambda x: tf.random.uniform([2]), w.assign_add):
            assert jax.make_jaxpr(call_tf(fun))(X[0]).effects
            assert not jax.make_jaxpr(call_tf(fun, has_side_effects=False))(X[0]).effects

    def test_a_function_that_returns_nothing(self):
        seen = []
        note = call_tf(lambda x: tf.py_function(lambda y: seen.append(float(y)), [x], []))
        with warned(1):
            jax.jit(lambda x: note(x) and None)(np.float32(3))
        jax.effects_barrier()
        assert seen == [3]

    def test_order(self):
        seen = []

        def note(x):
            tf.py_function(lambda y: seen.append(int(y)), [x], [])
            return x

        ordered = call_tf(note, ordered=True)

        @jax.jit
        def program(n):
            ordered(n)
            lax.fori_loop(0, 5, lambda i, c: (ordered(n + i + 1), c)[1], 0)
            jax.experimental.io_callback(lambda: seen.append("jax"), None, ordered=True)
            ordered(n + 6)

        program(np.int32(0))
        jax.effects_barrier()
        assert seen == [0, 1, 2, 3, 4, 5, "jax", 6]

    def test_ordered_calls_that_xla_compiles(self):
        same(jax.jit(call_tf(fun_tf, ordered=True))(X), fun_jax(X))
        same(
            jax.jit(jax.grad(summed(call_tf(fun_tf, ordered=True))))(X),
            jax.grad(summed(fun_jax))(X),
        )
        with pytest.raises(ValueError, match="ordered"):
            jax.vmap(call_tf(fun_tf, ordered=True))(X)


class TestBadInput:
    """One clear error each."""

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_results_that_jax_lacks(self, jit):
        for result, message in (
            (tf.constant("text"), "string, .* return numbers or booleans"),
            (object(), "object, .* return numbers or booleans"),
            (tf.ragged.constant([[1], []]), r"RaggedTensor, .* give its to_tensor\(\)"),
            (tf.sparse.from_dense([1, 0]), r"SparseTensor, .* give tf\.sparse\.to_dense"),
            (np.ma.masked_array([1.0, 2.0], [0, 1]), "MaskedArray, .* give its filled"),
            (tf.TensorArray(tf.float32, 3), r"TensorArray, .* give its stack\(\)"),
        ):
            with pytest.raises(ValueError, match=f"result 1 of .* has type {message}"):
                jit(call_tf(functools.partial(lambda y: (1, y), result)))()

    def test_arguments_that_tensorflow_lacks(self):
        identity = call_tf(lambda x: x)
        for x in (
            "text",
            np.array(["text"]),
            object(),
            b"bytes",
            [{"a": "text"}],
            tf.constant("a"),
        ):
            with pytest.raises(TypeError, match=r"argument args\[0\]"):
                identity(x)
        with pytest.raises(TypeError, match="key_data"):
            identity(jax.random.key(0))
        with pytest.raises(TypeError, match="function of TensorFlow"):
            call_tf(3)

    @pytest.mark.parametrize("jit", [lambda f: f, jax.jit], ids=["eager", "jit"])
    def test_results_that_are_not_as_declared(self, jit):
        for declared, reason in (
            ((X,), "structure"),
            ({"y": X}, "structure"),
            (jax.ShapeDtypeStruct((4,), np.float32), "float32"),
            (jax.ShapeDtypeStruct((3, 1), np.float32), "float32"),
            (jax.ShapeDtypeStruct((3,), np.int32), "float32"),
        ):
            with pytest.raises(ValueError, match=f"{reason}.*output_shape_dtype"):
                jit(call_tf(tf.sin, output_shape_dtype=declared))(X)
        with pytest.raises(TypeError, match="shape and dtype"):
            call_tf(tf.sin, output_shape_dtype=(3,))

    def test_the_line_of_the_user(self):
        with pytest.raises(lowering.LoweringError, match=r"call_tf\(.*test_call_tf\.py") as error:
            convert(lambda x: call_tf(lambda x: tf.reshape(x, [7]), output_shape_dtype=X)(x))(X)
        assert "call_primitive" not in str(error.value)

    def test_a_converted_function_inside_of_a_trace(self):
        """It says what to do; inside of call_tf it is in its place."""
        with pytest.raises(ValueError, match="inside a JAX transformation"):
            jax.jit(convert(jnp.sin))(X)
        same(jax.jit(call_tf(convert(jnp.sin)))(X), jnp.sin(X))


# A function of TensorFlow, and the shape of its argument of 4 * 3 numbers.
SYMBOLIC = {
    "same": (tf.sin, "b, 3"),
    "twice": (lambda x: tf.concat([x, x], 0), "b, 3"),
    "flat": (lambda x: tf.reshape(x, [-1]), "b, c"),
    "products": (lambda x: tf.einsum("ab,cd->acbd", x, x), "b, c"),
    "transposed": (tf.transpose, "b, c"),
    "scalar": (tf.reduce_sum, "b, c"),
    "even": (lambda x: tf.reshape(x, [-1, 2, 3]), "2*b, 3"),
}


class TestSymbolicShapes:
    """Shapes that are not known while JAX traces."""

    @pytest.mark.parametrize("name", SYMBOLIC)
    def test_they_are_found_out(self, name):
        fun, spec = SYMBOLIC[name]
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        expected = fun(tf.constant(x)).numpy()

        def program(x):
            y = call_tf(fun)(x)
            return y + jnp.ones(y.shape, y.dtype)

        converted = tf.function(
            convert(program, polymorphic_shapes=spec),
            autograph=False,
            input_signature=[tf.TensorSpec([None, None])],
        )
        np.testing.assert_allclose(converted(x), expected + 1, rtol=1e-6)

    def test_a_gradient(self):
        fun_tf = convert(jax.grad(summed(call_tf(tf.sin))), polymorphic_shapes="b, _")
        same(fun_tf(X[:, None]).numpy(), np.cos(X[:, None]))
        converted = convert(call_tf(tf.sin), polymorphic_shapes="b, _")
        x = tf.constant(X[:, None])
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        same(tape.gradient(y, x).numpy(), np.cos(X[:, None]))

    def test_they_are_declared(self):
        def program(x):
            struct = jax.ShapeDtypeStruct((x.shape[0] * 2, 3), x.dtype)
            return call_tf(lambda x: tf.concat([x, x], 0), output_shape_dtype=struct)(x)

        assert convert(program, polymorphic_shapes="b, _")(np.ones((4, 3), np.float32)).shape == (
            8,
            3,
        )
        unchanged = convert(
            lambda x: call_tf(tf.sin, output_shape_dtype=x)(x), polymorphic_shapes="b"
        )
        same(unchanged(X).numpy(), np.sin(X))

    def test_they_are_declared_wrongly(self):
        def program(x):
            return call_tf(lambda x: tf.concat([x, x], 0), output_shape_dtype=x)(x)

        fun_tf = convert(program, polymorphic_shapes="b")
        for call in (fun_tf, tf.function(fun_tf, input_signature=[tf.TensorSpec([None])])):
            with pytest.raises((tf.errors.InvalidArgumentError, lowering.LoweringError)):
                call(X)

    def test_they_depend_on_values(self):
        for fun in (tf.where, lambda x: tf.boolean_mask(x, x > 0)):
            with pytest.raises((ValueError, lowering.LoweringError), match="output_shape_dtype"):
                convert(call_tf(fun), polymorphic_shapes="b")(X)

    def test_a_program_of_jax(self):
        shape = jax.export.symbolic_shape("b")
        with pytest.raises(NotImplementedError, match=r"lowering\.convert"):
            jax.export.export(jax.jit(call_tf(tf.sin)))(jax.ShapeDtypeStruct(shape, np.float32))


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_mapped_functions_with_sizes_of_their_own(transform):
    """`tf.vectorized_map` takes the sizes of all elements for equal, and fails when it runs."""
    fun = call_tf(lambda x: tf.reduce_mean(tf.boolean_mask(x, x < 0)))
    x = np.float32([[1, -2, 3, -4], [3, 0, 5, -2]])
    same(transform(jax.vmap(fun))(x), jnp.float32([-3, -2]))


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (tf.ragged.constant([[1.0], [2.0, 3.0]]), "RaggedTensor, .* give its to_tensor()"),
        (tf.sparse.from_dense([1.0, 0.0]), "SparseTensor, .* give tf.sparse.to_dense"),
        (np.ma.masked_array([1.0, 2.0], [0, 1]), "MaskedArray, .* give its filled"),
    ],
)
def test_what_is_no_array(value, match):
    with pytest.raises(TypeError, match=match):
        call_tf(lambda x: x)(value)
