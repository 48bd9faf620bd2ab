"""Variables that functions called by `lowering.call_tf` read, write and are differentiated by."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import call_tf, convert
from tests.frontend.calling import X, same, summed
from tests.helpers import MODES, in_mode


class TestVariables:
    """Variables that a function reads, or writes."""

    def test_they_are_read(self):
        w, c = tf.Variable([2.0, 3.0, 4.0]), tf.constant([1.0, 2.0, 3.0])
        unused = tf.Variable(5)
        fun = call_tf(lambda x: (x * w + c, unused)[0])
        expected = X * w.numpy() + c.numpy()
        for transform in (lambda f: f, jax.jit, lambda f: jax.jit(jax.vmap(f, 0, 0))):
            if transform is not jax.vmap:
                same(jax.jit(fun)(X), expected)
            same(fun(X), expected)
        same(jax.jit(jax.grad(summed(fun)))(X), w.numpy())
        for mode in MODES:
            same(in_mode(convert(fun), mode)(X).numpy(), expected)

    def test_a_compiled_program_keeps_their_values(self):
        w = tf.Variable(2.0)
        fun = call_tf(lambda x: x * w)
        compiled = jax.jit(fun)
        same(compiled(X), X * 2)
        w.assign(3.0)
        same(fun(X), X * 3)
        same(compiled(X), X * 2)
        same(jax.jit(lambda x: fun(x))(X), X * 3)

    def test_a_converted_call_reads_them_when_it_runs(self, tmp_path):
        module = tf.Module()
        module.w = tf.Variable(2.0)
        module.fun = tf.function(
            convert(call_tf(lambda x: x * module.w)),
            autograph=False,
            input_signature=[tf.TensorSpec([3])],
        )
        tf.saved_model.save(module, tmp_path)
        loaded = tf.saved_model.load(tmp_path)
        loaded.w.assign(5.0)
        same(loaded.fun(X).numpy(), X * 5)

    def test_writing_is_for_calls_op_by_op(self):
        w = tf.Variable(1.0)

        def impure(x):
            w.assign_add(10.0)
            return x + w

        same(call_tf(impure)(np.float32(2)), jnp.float32(13))
        with pytest.raises(ValueError, match=r"writes to variables.*Pass their values"):
            jax.jit(call_tf(impure))(np.float32(2))
        with pytest.raises(ValueError, match="writes to variables"):
            jax.jit(call_tf(tf.function(impure)))(np.float32(2))

        def pure(x, w):
            return x + w + 10.0, w + 10.0

        same(jax.jit(call_tf(pure))(np.float32(2), w.numpy()), (jnp.float32(23), jnp.float32(21)))


def _mapped_gradient(fun):
    return jax.vmap(jax.grad(lambda x: fun(x).sum()))


class TestGradientsByVariables:
    """TensorFlow's gradients of converted functions by variables that `call_tf` reads."""

    def given(self):
        w, scale, table = tf.Variable([2.0, 3.0]), tf.Variable(0.5), tf.Variable(tf.ones([4, 2]))
        return w, scale, table, tf.constant([1.0, 4.0])

    @pytest.mark.parametrize("mode", ["eager", "graph", "compiled"])
    @pytest.mark.parametrize(
        "around",
        [
            lambda f: f,
            jax.jit,
            jax.checkpoint,
            lambda f: lambda x: lax.scan(lambda c, _: (f(c), c.sum()), x, None, 3)[0],
            lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c), x),
            lambda f: lambda x: lax.cond(x.sum() > 0, f, lambda x: x, x),
            lambda f: lambda x: jax.vmap(f)(jnp.stack([x, 2 * x])),
            lambda f: jax.grad(lambda x: f(x).sum()),
            lambda f: lambda x: _mapped_gradient(f)(jnp.stack([x, 2 * x])),
        ],
        ids=["call", "jit", "remat", "scan", "fori", "cond", "vmap", "grad", "mapped gradient"],
    )
    def test_first_and_second_derivatives(self, around, mode):
        *variables, x = self.given()
        w, scale, table = variables

        def fun(x, w, scale, table, take=lambda table: table[2]):
            return tf.sin(w * x) * scale + take(table)

        read = convert(around(call_tf(lambda x: fun(x, *variables))))
        take = lambda table: tf.gather(table, 2)  # noqa: E731  Its gradient is of slices.
        read_slices = convert(around(call_tf(lambda x: fun(x, *variables, take=take))))
        given = convert(lambda x, *values: around(lambda x: call_tf(fun)(x, *values))(x))

        def derivatives(run):
            sources = [x, *variables]
            with tf.GradientTape(persistent=True) as outer:
                outer.watch(x)
                with tf.GradientTape(persistent=True) as tape:
                    tape.watch(x)
                    y = tf.reduce_sum(run() ** 2)
                first = tape.gradient(y, sources)
                total = tf.add_n([tf.reduce_sum(tf.convert_to_tensor(g) ** 2) for g in first])
            return [*first, *outer.gradient(total, sources)]

        def results(run):
            wrapped = lambda: list(map(tf.convert_to_tensor, derivatives(run)))  # noqa: E731
            if mode == "eager":
                return wrapped()
            return tf.function(wrapped, autograph=False, jit_compile=mode == "compiled")()

        expected = results(lambda: given(x, w, scale, table))
        for run in (read, read_slices):
            for found, wanted in zip(results(lambda run=run: run(x)), expected, strict=True):
                np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-5)

    def test_a_step_of_training(self):
        """Variables of layers of TensorFlow are trained through a function of JAX."""
        w, _, _, x = self.given()
        fun = convert(lambda x: jnp.sum((call_tf(lambda x: w * x)(x) - 1.0) ** 2))

        @tf.function(autograph=False)
        def step():
            with tf.GradientTape() as tape:
                loss = fun(x)
            (gradient,) = tape.gradient(loss, tape.watched_variables())
            w.assign_sub(0.02 * gradient)
            return loss

        losses = [float(step()) for _ in range(50)]
        assert losses[-1] < 0.01 * losses[0]

    def test_a_saved_model(self, tmp_path):
        w, _, _, x = self.given()
        module = tf.Module()
        module.w = w
        fun = tf.function(convert(call_tf(lambda x: w * x)), autograph=False)
        module.fun = fun
        fun.get_concrete_function(x)
        tf.saved_model.save(
            module,
            tmp_path,
            options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
        )
        loaded = tf.saved_model.load(tmp_path)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded.fun(x)
        of_x, of_w = tape.gradient(y, [x, loaded.w])
        same(of_x.numpy(), w.numpy())
        same(of_w.numpy(), x.numpy())

    def test_functions_with_tapes_of_their_own(self):
        w, _, _, x = self.given()

        def inner(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = w * x**3
            return tape.gradient(y, x)

        fun = convert(call_tf(inner))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun(x)
        of_x, of_w = tape.gradient(y, [x, w])
        np.testing.assert_allclose(y, 3 * w * x**2, rtol=1e-6)
        np.testing.assert_allclose(of_x, 6 * w * x, rtol=1e-6)
        np.testing.assert_allclose(of_w, 3 * x**2, rtol=1e-6)

    def test_a_while_loop_gives_none_and_leaves_other_gradients(self):
        w, _, _, x = self.given()

        def fun(x):
            total = lax.while_loop(
                lambda s: jnp.sum(s) < 20, lambda s: s + call_tf(lambda: 1 * w)(), jnp.zeros(2)
            )
            return x * total

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = convert(fun)(x)
        with pytest.warns(UserWarning, match="in a while loop"):
            of_x, of_w = tape.gradient(y, [x, w])
        same(of_x.numpy(), np.float32([8, 12]))
        assert of_w is None

    def test_a_function_that_cannot_be_traced_leaves_no_part_of_a_sum(self):
        w, _, _, x = self.given()
        shape = jax.ShapeDtypeStruct((2,), np.float32)

        def of_values(x):
            assert x.numpy().size == 2
            return w * x

        traced = call_tf(lambda x: w * x)
        fun = convert(lambda x: traced(x) + call_tf(of_values, output_shape_dtype=shape)(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fun(x)
        with pytest.warns(UserWarning, match="cannot trace a function"):
            assert tape.gradient(y, w) is None

    def test_what_has_a_derivative_of_its_own_gives_none_but_not_in_silence(self):
        w, _, _, x = self.given()

        @jax.custom_vjp
        def fun(x):
            return call_tf(lambda x: x * w)(x)

        fun.defvjp(lambda x: (fun(x), None), lambda _, cotangent: (7 * cotangent,))
        converted = convert(fun)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = converted(x)
        with pytest.warns(UserWarning, match=f"by {w.name} is None"):
            of_x, of_w = tape.gradient(y, [x, w])
        same(of_x.numpy(), np.full(2, 7, np.float32))
        assert of_w is None
