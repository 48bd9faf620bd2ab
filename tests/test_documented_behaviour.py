"""What the documentation of `jax.experimental.jax2tf` promises of graph serialization, shown.

Where this package does better than was promised, the test says so. Specifications of shapes, their
checks, and `call_tf` have more tests of their own.
"""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import call_tf, jax2tf
from tests.helpers import MODES, assert_same, graph_of, in_mode, op_counts

ZERO = tf.UnconnectedGradients.ZERO
NONE = tf.UnconnectedGradients.NONE
WITH_GRADIENTS = tf.saved_model.SaveOptions(experimental_custom_gradients=True)


class TestGradients:
    """The table of gradients: of integers, of what is not used, of functions with their own."""

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("unconnected", [NONE, ZERO])
    @pytest.mark.parametrize("kind", [tf.constant, tf.Variable])
    def test_unused_and_integer_arguments(self, mode, unconnected, kind):
        """Zero for a float that is not used; None, or zero if asked for, for an integer."""
        converted = jax2tf.convert(lambda x0, x1, x2, x3: x0 * 0.0 + x2 * 2.0, with_gradient=True)
        xs = [kind(x) for x in (10.0, 11.0, 12.0, 13)]

        def gradients():
            with tf.GradientTape() as tape:
                tape.watch([x for x in xs if x.dtype.is_floating])
                result = converted(*xs)
            found = tape.gradient(result, xs, unconnected_gradients=unconnected)
            return found if unconnected is ZERO else found[:3]

        expected = [np.float32(0), np.float32(0), np.float32(2)]
        found = in_mode(gradients, mode)()
        assert_same(list(found[:3]), expected)
        if unconnected is ZERO:
            assert found[3].dtype == tf.int32 and found[3] == 0

    def test_the_gradient_of_an_integer_is_none(self):
        x = tf.Variable(13)
        with tf.GradientTape() as tape:
            y = jax2tf.convert(lambda x, i: x * i)(tf.constant(2.0), x)
        assert tape.gradient(y, x) is None

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("dtype", ["int16", "int32", "bool", "uint8"])
    def test_float0(self, mode, dtype):
        """Of dtype bool, as in JAX's own programs. It was int32, a number."""
        x = np.array([0, 1], dtype)
        gradient = jax.grad(lambda x: jnp.sum(x * 2.0), allow_int=True)
        assert gradient(x).dtype == jax.dtypes.float0
        result = in_mode(jax2tf.convert(gradient), mode)(x)
        assert result.dtype == tf.bool and not np.any(result)

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
    def test_custom_derivatives(self, mode, kind):
        if kind == "custom_vjp":
            fun = jax.custom_vjp(lambda x: x * x)
            fun.defvjp(lambda x: (x * x, x), lambda x, g: (g * 3.0 * x,))
        else:
            fun = jax.custom_jvp(lambda x: x * x)
            fun.defjvp(lambda x, t: (x[0] * x[0], 3.0 * x[0] * t[0]))

        def first_and_second(x):
            with tf.GradientTape() as outer:
                outer.watch(x)
                with tf.GradientTape() as inner:
                    inner.watch(x)
                    y = jax2tf.convert(fun)(x)
                first = inner.gradient(y, x)
            return y, first, outer.gradient(first, x)

        x = np.float32(4)
        expected = fun(x), jax.grad(fun)(x), jax.grad(jax.grad(fun))(x)
        assert_same(
            in_mode(first_and_second, mode)(tf.constant(x)), tuple(map(np.asarray, expected))
        )

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(
        "transform",
        [
            jax.grad,
            jax.hessian,
            jax.jacfwd,
            lambda f: lambda x: jax.jvp(f, (x,), (x,)),
            lambda f: jax.vmap(lambda y: f(jnp.stack([y, y]))),
            lambda f: jax.grad(lambda x: jax.grad(f)(x).sum()),
        ],
    )
    def test_derivatives_by_jax(self, mode, transform):
        fun = transform(lambda x: jnp.sum(jnp.sin(x) * x[::-1]))
        x = np.float32([0.5, 1.5])
        expected = jax.tree.map(np.asarray, fun(x))
        assert_same(in_mode(jax2tf.convert(fun), mode)(x), expected)

    @pytest.mark.parametrize("mode", MODES)
    def test_through_variables_with_symbolic_shapes(self, mode):
        w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        converted = jax2tf.convert(
            lambda w, x: jnp.tanh(x @ w), polymorphic_shapes=[None, "(b, _)"]
        )

        def gradient(x):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(converted(w, x))
            return tape.gradient(y, w)

        x = np.float32([[1, 2], [0.5, -1], [0, 1]])
        expected = jax.grad(lambda w: jnp.tanh(x @ w).sum())(w.numpy())
        spec = [tf.TensorSpec([None, 2])]
        options = {} if mode == "eager" else {"input_signature": spec}
        np.testing.assert_allclose(in_mode(gradient, mode, **options)(x), expected, rtol=1e-4)

    def test_saved_and_loaded(self, tmp_path):
        module = tf.Module()
        module.fun = tf.function(
            jax2tf.convert(lambda x: jnp.sum(jnp.sin(x) ** 2), polymorphic_shapes="b"),
            autograph=False,
            input_signature=[tf.TensorSpec([None])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        loaded = tf.saved_model.load(tmp_path)
        for size in (1, 3):
            x = tf.Variable(np.linspace(0, 1, size, dtype=np.float32))
            with tf.GradientTape() as tape:
                y = loaded.fun(x)
            np.testing.assert_allclose(tape.gradient(y, x), np.sin(2 * x.numpy()), rtol=1e-5)

    def test_a_function_that_jax_cannot_differentiate_is_saved(self, tmp_path):
        """It was an error to save it, unless it was converted with `with_gradient=False`."""
        module = tf.Module()
        module.fun = tf.function(
            jax2tf.convert(lambda x: lax.while_loop(lambda x: x < 9, lambda x: x * 2, x)),
            autograph=False,
            input_signature=[tf.TensorSpec([])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        assert tf.saved_model.load(tmp_path).fun(2.0) == 16


class CustomPair:
    """A container that JAX is told of."""

    def __init__(self, a, b):
        self.a = a
        self.b = b


jax.tree_util.register_pytree_node(
    CustomPair, lambda x: ((x.a, x.b), None), lambda _, ab: CustomPair(*ab)
)


class TestContainers:
    """Arguments and results that are nested data."""

    @staticmethod
    def fun(pair):
        return 2.0 * pair.a + 3.0 * pair.b

    @pytest.mark.parametrize("mode", MODES)
    def test_custom_containers(self, mode):
        converted = jax2tf.convert(self.fun)
        assert in_mode(lambda: converted(CustomPair(4.0, 5.0)), mode)() == 23
        swapped = jax2tf.convert(lambda pair: CustomPair(pair.b, pair.a))(CustomPair(4.0, 5.0))
        assert type(swapped) is CustomPair and swapped.a == 5

    def test_gradients_of_custom_containers(self):
        """They needed a wrapper function of standard containers."""
        pair = CustomPair(tf.Variable(4.0), tf.Variable(5.0))
        with tf.GradientTape() as tape:
            y = jax2tf.convert(self.fun)(pair)
        assert [g.numpy() for g in tape.gradient(y, [pair.a, pair.b])] == [2, 3]

    def test_saving_custom_containers(self, tmp_path):
        converted = jax2tf.convert(self.fun)
        module = tf.Module()
        module.fun = tf.function(
            lambda a, b: converted(CustomPair(a, b)),
            autograph=False,
            input_signature=[tf.TensorSpec([]), tf.TensorSpec([])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        loaded = tf.saved_model.load(tmp_path)
        a, b = tf.Variable(4.0), tf.Variable(5.0)
        with tf.GradientTape() as tape:
            y = loaded.fun(a, b)
        assert y == 23 and [g.numpy() for g in tape.gradient(y, [a, b])] == [2, 3]

    def test_containers_that_tensorflow_wraps(self):
        """They needed to be flattened before they were made attributes."""
        module = tf.Module()
        module.data = {"list": [1.0, 2.0], "tuple": (3.0,)}
        fun = jax2tf.convert(lambda data: data["list"][0] + data["tuple"][0])
        assert fun(module.data) == 4


class TestWidths:
    """64-bit values: a converted function takes them as JAX does."""

    def test_by_default(self):
        wide = tf.Variable(3.14, dtype=tf.float64)
        for x in (3.14, np.float64(3.14), wide):
            assert jax2tf.convert(jnp.sin)(x).dtype == tf.float32
        assert tf.function(jax2tf.convert(jnp.sin), autograph=False)(wide).dtype == tf.float32
        assert jax2tf.convert(jnp.sin)(
            tf.Variable(3.14, dtype=jax2tf.dtype_of_val(3.14))
        ).dtype == (tf.float32)

    def test_with_64_bits(self):
        with jax.enable_x64(True):
            wide = tf.Variable(3.14, dtype=tf.float64)
            for x in (3.14, np.float64(3.14), wide):
                assert jax2tf.convert(jnp.sin)(x).dtype == tf.float64
            assert jax2tf.convert(jnp.sin)(tf.Variable(3.14)).dtype == tf.float32
            same = tf.Variable(3.14, dtype=jax2tf.dtype_of_val(3.14))
            assert jax2tf.convert(jnp.sin)(same).dtype == tf.float64


class TestSavedModels:
    """What is saved, and how much of it."""

    def test_several_shapes_in_one_model(self, tmp_path):
        module = tf.Module()
        module.fun = tf.function(
            jax2tf.convert(lambda x: x.reshape(x.shape[0], -1)), autograph=False
        )
        for batch in (1, 16):
            module.fun(tf.ones([batch, 4, 4]))
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        loaded = tf.saved_model.load(tmp_path)
        for batch in (1, 16):
            assert loaded.fun(tf.ones([batch, 4, 4])).shape == (batch, 16)
        with pytest.raises(ValueError):
            loaded.fun(tf.ones([2, 4, 4]))

    def test_several_signatures(self, tmp_path):
        module = tf.Module()
        signatures = {}
        for name, fun in {"sin": jnp.sin, "cos": jnp.cos}.items():
            function = tf.function(jax2tf.convert(fun), autograph=False)
            signatures[name] = function.get_concrete_function(tf.TensorSpec([2], name="x"))
        tf.saved_model.save(module, tmp_path, signatures=signatures, options=WITH_GRADIENTS)
        loaded = tf.saved_model.load(tmp_path).signatures
        x = tf.constant([0.5, 1.5])
        for name, expected in {"sin": np.sin(x), "cos": np.cos(x)}.items():
            (result,) = loaded[name](x=x).values()
            np.testing.assert_allclose(result, expected, rtol=1e-6)

    @pytest.mark.parametrize("jit_compile", [False, True])
    def test_parameters_are_stored_once(self, jit_compile, tmp_path):
        """As variables, outside of the graph, whose gradients are in the model, too."""
        params = [np.ones((500, 500), np.float32), np.ones((500, 500), np.float32)]

        def model(params, x):
            for w in params:
                x = jnp.tanh(x @ w)
            return x

        module = tf.Module()
        module.params = tf.nest.map_structure(tf.Variable, params)
        converted = jax2tf.convert(model, polymorphic_shapes=[None, "b, _"])
        module.fun = tf.function(
            lambda x: converted(module.params, x),
            autograph=False,
            jit_compile=jit_compile,
            input_signature=[tf.TensorSpec([None, 500])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        size = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
        assert size <= 1.05 * sum(w.nbytes for w in params)
        loaded = tf.saved_model.load(tmp_path)
        x = np.full((2, 500), 0.001, np.float32)
        np.testing.assert_allclose(loaded.fun(x), model(params, x), rtol=1e-4)
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(loaded.fun(x))
        gradients = tape.gradient(y, list(loaded.params))
        expected = jax.grad(lambda params: model(params, x).sum())(params)
        for g, e in zip(gradients, expected, strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-3, atol=1e-6)

    def test_a_compiled_part_between_what_xla_cannot_compile(self, tmp_path):
        compiled = tf.function(
            jax2tf.convert(lambda x: x * 2, polymorphic_shapes="b"),
            autograph=False,
            jit_compile=True,
        )
        module = tf.Module()
        module.fun = tf.function(
            lambda text: tf.strings.as_string(compiled(tf.strings.to_number(text)), precision=1),
            autograph=False,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )
        tf.saved_model.save(module, tmp_path)
        loaded = tf.saved_model.load(tmp_path)
        for text, expected in ((["1.5", "2"], [b"3.0", b"4.0"]), (["0"], [b"0.0"])):
            assert loaded.fun(tf.constant(text)).numpy().tolist() == expected

    @pytest.mark.parametrize("enable_xla", [True, False])
    def test_without_jax(self, enable_xla, tmp_path):
        """A process that has no JAX loads a model, runs it and differentiates it."""
        module = tf.Module()
        module.w = tf.Variable([2.0, 3.0])
        converted = jax2tf.convert(
            lambda w, x: jnp.sin(x) * w, polymorphic_shapes=[None, "b, _"], enable_xla=enable_xla
        )
        module.fun = tf.function(
            lambda x: converted(module.w, x),
            autograph=False,
            input_signature=[tf.TensorSpec([None, 2])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        code = f"""
import sys
sys.modules["jax"] = sys.modules["lowering"] = None
import numpy as np, tensorflow as tf
loaded = tf.saved_model.load({str(tmp_path)!r})
x = np.float32([[1, 2], [3, 4], [5, 6]])
with tf.GradientTape() as tape:
    y = loaded.fun(x)
np.testing.assert_allclose(y, np.sin(x) * [2, 3], rtol=1e-5)
np.testing.assert_allclose(tape.gradient(y, loaded.w), np.sin(x).sum(0), rtol=1e-5)
"""
        subprocess.run(
            [sys.executable, "-c", code],
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": ""},
        )

    @pytest.mark.parametrize("with_gradient, copies", [(True, 2), (False, 1)])
    def test_what_a_function_closes_over_is_in_the_graph(self, with_gradient, copies, tmp_path):
        """Once in the function, and once in its gradient; so parameters are better arguments."""
        w = np.random.default_rng(0).normal(size=(300, 300)).astype(np.float32)
        module = tf.Module()
        module.fun = tf.function(
            jax2tf.convert(lambda x: jnp.tanh(x @ w), with_gradient=with_gradient),
            autograph=False,
            input_signature=[tf.TensorSpec([2, 300])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        size = (tmp_path / "saved_model.pb").stat().st_size
        assert copies <= size / w.nbytes < copies + 0.1

    def test_a_loaded_model_has_first_derivatives_alone(self, tmp_path):
        module = tf.Module()
        module.fun = tf.function(
            jax2tf.convert(lambda x: jnp.sin(x) ** 3),
            autograph=False,
            input_signature=[tf.TensorSpec([2])],
        )
        tf.saved_model.save(module, tmp_path, options=WITH_GRADIENTS)
        loaded = tf.saved_model.load(tmp_path)

        x = tf.Variable([0.5, 1.5])

        def first(fun):
            with tf.GradientTape() as tape:
                y = fun(x)
            return tape.gradient(y, x)

        def second(fun):
            with tf.GradientTape() as tape:
                y = first(fun)
            return tape.gradient(y, x)

        np.testing.assert_allclose(first(loaded.fun), first(module.fun), rtol=1e-6)
        expected = jax.vmap(jax.grad(jax.grad(lambda x: jnp.sin(x) ** 3)))(x.numpy())
        np.testing.assert_allclose(second(module.fun), expected, rtol=1e-5)
        # What TensorFlow raises depends on whether the process has the function that was saved.
        with pytest.raises((LookupError, TypeError)):
            second(loaded.fun)

    @pytest.mark.parametrize("implementation", ["threefry2x32", "unsafe_rbg"])
    def test_draws_of_random_numbers_are_a_few_nodes_each(self, implementation):
        """Dozens of ops each made large models of the default generator. It is a function now."""

        def nodes(count):
            def draw(seed):
                key = jax.random.key(seed, impl=implementation)
                keys = (jax.random.fold_in(key, i) for i in range(count))
                return sum(jax.random.uniform(k, (3, i + 1)).sum() for i, k in enumerate(keys))

            return op_counts(graph_of(draw, np.int32(1))).total()

        assert (nodes(12) - nodes(4)) / 8 < 12


class TestSharding:
    """Sharded arguments and results: all shards are on one device, in eager mode, too."""

    @pytest.mark.parametrize("mode", MODES)
    def test_jit_with_shardings(self, mode):
        mesh = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
        sharding = jax.NamedSharding(mesh, jax.P("i"))

        def fun(x):
            return lax.with_sharding_constraint(jnp.sin(x), sharding) * 2

        sharded = jax.jit(fun, in_shardings=sharding, out_shardings=sharding)
        x = np.linspace(0, 1, 8, dtype=np.float32)
        for converted in (jax2tf.convert(sharded), jax2tf.convert(lambda x: sharded(x))):
            assert_same(in_mode(converted, mode)(x), np.asarray(sharded(x)))


IMAGES = np.arange(2 * 3 * 3, dtype=np.float32).reshape(2, 3, 3)
ROWS = np.arange(60, dtype=np.float32).reshape(20, 3)
LINE = np.arange(9, dtype=np.float32)


def _product_of_squares(x):
    return jnp.matmul(x, jnp.sin(x)) if x.shape[-2] == x.shape[-1] else None


class TestSymbolicShapes:
    """The examples of programs of symbolic shapes, each in one graph for all sizes."""

    @pytest.mark.parametrize("mode", ["eager", "graph"])
    @pytest.mark.parametrize(
        "fun, shapes, args, constraints",
        [
            (_product_of_squares, "(b, d, d)", [IMAGES], ()),
            (lambda x, y: x @ y, ["(b, _, _)", None], [IMAGES, ROWS[:3]], ()),
            (lambda x, y: x * y[:, None], ["(n, _)", "(n,)"], [ROWS, ROWS[:, 0]], ()),
            (lambda x, m: x * m, ["(b, w, w)", "(w, w)"], [IMAGES, IMAGES[0]], ()),
            (lambda x: x.reshape(x.shape[0] * x.shape[1]), "(b, 3)", [ROWS], ()),
            (lambda x: x + x.shape[0] + jnp.sin(x.shape[0]), "b", [LINE], ()),
            (lambda x: (5.0 + x.shape[0], x.shape[0] - np.ones(5, np.int32)), "b", [LINE], ()),
            (lambda x: jnp.array(x.shape) * jnp.array(x.shape[0]), "(a, b)", [ROWS], ()),
            (lambda x: jnp.sum(x, axis=0) / x.shape[0], "(v, _)", [ROWS], ()),
            (lambda x: x.reshape(2, -1), "(b, ...)", [ROWS[:, :2]], ()),
            (lambda x: x.reshape(-1, x.shape[0]), "(a, b, ...)", [IMAGES], ()),
            (lambda x: x.reshape(2, -1), "(2*b, ...)", [ROWS], ()),
            (lambda x: x[0:16], "b + 15, ...", [ROWS], ()),
            (lambda x: x[: x.shape[1], :3], "(a, b)", [ROWS], ("a >= b", "b >= 3")),
            (lambda x: x[: 4 * (x.shape[0] // 4)], "b", [LINE], ("b >= 4*floordiv(b, 4)",)),
            (
                lambda x, y: x + y[: y.shape[0] // 2],
                ["a", "b"],
                [LINE[:4], LINE],
                ("floordiv(b, 2) == a",),
            ),
            (lambda x: jnp.ones(jax.core.max_dim(x.shape[0] - 12, 0)), "b", [LINE], ()),
            (lambda x: jnp.ones(jax.core.min_dim(x.shape[0], 4)), "b", [LINE], ()),
            (jax.vmap(lambda x: jnp.sort(x)[::-1] + x.shape[0]), "(b, _)", [ROWS], ()),
        ],
    )
    def test_programs(self, fun, shapes, args, constraints, mode):
        converted = jax2tf.convert(
            fun, polymorphic_shapes=shapes, polymorphic_constraints=constraints
        )
        if mode == "graph":
            listed = [shapes] if isinstance(shapes, str) else shapes
            specs = [
                tf.TensorSpec(x.shape if spec is None else _unknown(spec, x.shape), x.dtype)
                for spec, x in zip(listed, args, strict=True)
            ]
            function = tf.function(converted, autograph=False, input_signature=specs)
            converted = function.get_concrete_function()
        expected = jax.tree.map(np.asarray, jax.jit(fun)(*args))
        assert_same(converted(*map(tf.constant, args)), expected)

    @pytest.mark.parametrize(
        "fun, shapes, args, error, message",
        [
            (lambda x, y: x + y, ["v", "4"], [LINE[:4]] * 2, TypeError, "incompatible shapes"),
            (lambda x: x @ x, "(v, 3)", [ROWS[:3]], TypeError, "contracting dimensions"),
            (
                lambda x: x.reshape(x.shape[0] * np.array([x.shape[1]])),
                "(b, 3)",
                [ROWS],
                TypeError,
                "Shapes must be 1D sequences",
            ),
            (
                lambda x: x.reshape(2, -1),
                "(b, ...)",
                [ROWS],
                jax.errors.InconclusiveDimensionOperation,
                "Cannot divide evenly",
            ),
            (
                lambda x: 0 if x.shape[0] + 1 >= x.shape[1] else 1,
                "(a, b)",
                [ROWS],
                jax.errors.InconclusiveDimensionOperation,
                "'a [+] 1' >= 'b' is inconclusive",
            ),
            (
                lambda x, y: x + y[: y.shape[0] // 2],
                ["a", "b"],
                [LINE[:4], LINE],
                TypeError,
                "incompatible shapes",
            ),
        ],
    )
    def test_what_jax_cannot_tell_of_shapes(self, fun, shapes, args, error, message):
        """Though it may hold for the sizes that are given: the errors are JAX's."""
        with pytest.raises(error, match=message):
            jax2tf.convert(fun, polymorphic_shapes=shapes)(*args)

    @pytest.mark.parametrize(
        "fun, shapes, x",
        [
            (lambda x: 0 if x.shape[0] == 0 else 1, "b", LINE[:0]),
            (lambda x: 0 if x.shape[0] != x.shape[1] else 1, "b, b", ROWS),
        ],
    )
    def test_assumptions_are_checked_in_a_graph_too(self, fun, shapes, x):
        """A graph computed the wrong result."""
        converted = jax2tf.convert(fun, polymorphic_shapes=[shapes])
        with pytest.raises(ValueError):
            converted(x)
        spec = tf.TensorSpec([None] * x.ndim)
        graph = tf.function(converted, autograph=False, input_signature=[spec])
        with pytest.raises(tf.errors.InvalidArgumentError):
            graph.get_concrete_function()(tf.constant(x))


def _unknown(spec, shape):
    """A shape of which TensorFlow knows the sizes that a specification does not name."""
    dims = spec.strip("(),").replace("...", "_").split(",")
    dims += ["_"] * (len(shape) - len(dims))
    return [n if dim.strip() in ("_", str(n)) else None for dim, n in zip(dims, shape, strict=True)]


class TestFlags:
    """Flags of JAX that are about its own converter."""

    def test_reductions_by_associative_scans_change_nothing(self):
        """How cumulative reductions are computed depends on the target alone."""
        x = np.float32([3, 1, 2])

        def ops():
            return op_counts(graph_of(lambda x: (jnp.cumsum(x), lax.cummax(x)), x))

        usual = ops()
        with jax.jax2tf_associative_scan_reductions(True):
            assert ops() == usual


class TestCalls:
    """Both directions together."""

    @pytest.mark.parametrize("mode", MODES)
    def test_sine_by_jax_of_cosine_by_tensorflow(self, mode):
        def fun(x):
            return jnp.sin(call_tf(tf.math.cos)(x))

        x = np.float32(1)
        for transform in (lambda f: f, jax.jit, jax.grad, jax.vmap):
            given = x[None] if transform is jax.vmap else x
            expected = transform(lambda x: jnp.sin(jnp.cos(x)))(given)
            np.testing.assert_allclose(transform(fun)(given), expected, rtol=1e-6)
            actual = in_mode(jax2tf.convert(transform(fun)), mode)(given)
            np.testing.assert_allclose(actual, expected, rtol=1e-6)

    def test_there_and_back_several_times(self):
        fun = jnp.sin
        for _ in range(3):
            fun = call_tf(jax2tf.convert(fun))
        x = np.float32([0.5, 1.5])
        for transform in (lambda f: f, jax.jit, lambda f: jax.grad(lambda x: f(x).sum())):
            np.testing.assert_allclose(transform(fun)(x), transform(jnp.sin)(x), rtol=1e-6)


class TestTraining:
    """Twenty steps by TensorFlow, or by optax in TensorFlow, end where those of JAX do."""

    X = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    Y = np.random.default_rng(1).normal(size=(32, 1)).astype(np.float32)
    STEPS = 20

    @staticmethod
    def params():
        rng = np.random.default_rng(2)
        return {
            "w": [rng.normal(size=s).astype(np.float32) / 2 for s in ((4, 8), (8, 1))],
            "b": np.zeros(8, np.float32),
        }

    @staticmethod
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["w"][0] + params["b"])
        return jnp.mean((hidden @ params["w"][1] - y) ** 2)

    def by_jax(self, optimizer):
        """The loss before each step and after the last."""
        import optax

        params = self.params()
        state = optimizer.init(params)
        losses = []
        for _ in range(self.STEPS):
            value, gradients = jax.value_and_grad(self.loss)(params, self.X, self.Y)
            updates, state = optimizer.update(gradients, state, params)
            params = optax.apply_updates(params, updates)
            losses.append(float(value))
        return [*losses, float(self.loss(params, self.X, self.Y))]

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("name", ["momentum", "adam"])
    def test_optax_in_tensorflow(self, name, mode):
        optax = pytest.importorskip("optax")
        optimizer = optax.sgd(0.1, momentum=0.9) if name == "momentum" else optax.adam(0.05)

        def step(params, state, x, y):
            value, gradients = jax.value_and_grad(self.loss)(params, x, y)
            updates, state = optimizer.update(gradients, state, params)
            return value, optax.apply_updates(params, updates), state

        params, state = self.params(), optimizer.init(self.params())
        leaves, tree = jax.tree.flatten((params, state))
        variables = [tf.Variable(x) for x in leaves]
        converted = jax2tf.convert(step)

        def run():
            value, *new = converted(*jax.tree.unflatten(tree, variables), self.X, self.Y)
            for variable, updated in zip(variables, jax.tree.leaves(tuple(new)), strict=True):
                variable.assign(updated)
            return value

        run = in_mode(run, mode)
        losses = [float(run()) for _ in range(self.STEPS)]
        params, _ = jax.tree.unflatten(tree, variables)
        losses.append(float(jax2tf.convert(self.loss)(params, self.X, self.Y)))
        np.testing.assert_allclose(losses, self.by_jax(optimizer), rtol=1e-4)

    @pytest.mark.parametrize("mode", MODES)
    def test_an_optimizer_of_tensorflow(self, mode):
        optax = pytest.importorskip("optax")
        params = tf.nest.map_structure(tf.Variable, self.params())
        optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
        optimizer.build(tf.nest.flatten(params))
        converted = jax2tf.convert(self.loss)

        def step():
            with tf.GradientTape() as tape:
                value = converted(params, self.X, self.Y)
            variables = tf.nest.flatten(params)
            gradients = tape.gradient(value, variables)
            optimizer.apply_gradients(zip(gradients, variables, strict=True))
            return value

        step = in_mode(step, mode)
        losses = [float(step()) for _ in range(self.STEPS)]
        losses.append(float(converted(params, self.X, self.Y)))
        np.testing.assert_allclose(losses, self.by_jax(optax.sgd(0.1, momentum=0.9)), rtol=1e-4)

    def test_a_step_of_keras(self):
        optax = pytest.importorskip("optax")
        params = self.params()

        class Layer(tf.keras.layers.Layer):
            def __init__(self):
                super().__init__()
                leaves, self.tree = jax.tree.flatten(params)
                self.leaves = [
                    self.add_weight(shape=x.shape, initializer="zeros", name=f"w{i}")
                    for i, x in enumerate(leaves)
                ]
                for variable, x in zip(self.leaves, leaves, strict=True):
                    variable.assign(x)
                self.apply = jax2tf.convert(_predict, polymorphic_shapes=[None, "b, _"])

            def call(self, x):
                return self.apply(jax.tree.unflatten(self.tree, list(self.leaves)), x)

        model = tf.keras.Sequential([tf.keras.Input((4,)), Layer()])
        model.compile(tf.keras.optimizers.SGD(0.1, momentum=0.9), "mse")
        history = model.fit(
            self.X, self.Y, batch_size=32, epochs=self.STEPS, shuffle=False, verbose=0
        )
        losses = [*history.history["loss"], model.evaluate(self.X, self.Y, verbose=0)]
        np.testing.assert_allclose(losses, self.by_jax(optax.sgd(0.1, momentum=0.9)), rtol=1e-4)


def _predict(params, x):
    return jnp.tanh(x @ params["w"][0] + params["b"]) @ params["w"][1]
