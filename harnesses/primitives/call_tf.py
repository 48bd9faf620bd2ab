"""TensorFlow functions that a JAX function calls. JAX has them compiled by XLA into its program."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

from harnesses.arguments import ALL, INEXACT, name, random
from harnesses.axes import axes, every_axis, symbolic
from harnesses.compare import close, close_to_largest
from harnesses.harness import DERIVATIVES, SEVERAL_STEPS, Harness, harnesses
from lowering import call_tf, convert


@harnesses
@symbolic(every_axis)
def dtypes():
    moved = call_tf(lambda x: (tf.concat([x, x[:2]], 0), tf.transpose(x)))
    for dtype in ALL:
        args = (random((4, 3), dtype),)
        # The size of a slice of up to two rows is no polynomial.
        yield Harness("call_tf", f"moved_{name(dtype)}", moved, args, symbolic=axes(1))
    computed = call_tf(lambda x: tf.sin(x) * x)
    for dtype in INEXACT:
        args = (random((4, 3), dtype),)
        yield Harness("call_tf", f"computed_{name(dtype)}", computed, args, close())


@harnesses
def signatures():
    x, y = random((4, 3), np.float32), random((3, 4), np.float32)
    nested = call_tf(lambda x, *, y: {"product": x @ y["y"], "sums": (tf.reduce_sum(x, 0), x[0])})
    yield Harness("call_tf", "nested", lambda x, y: nested(x, y={"y": y}), (x, y), close())

    @symbolic(every_axis)
    def declared():
        fun = lambda x: call_tf(lambda x: tf.concat([x, -x], 0), output_shape_dtype=_twice(x))(x)  # noqa: E731
        yield Harness("call_tf", "declared", fun, (x,))

    yield from declared()
    number = call_tf(lambda: tf.range(3))
    yield Harness("call_tf", "no_arguments", lambda x: x + number()[0], (random((4,), np.int32),))
    product = call_tf(lambda x: tf.nn.relu(x @ _variable()))
    yield Harness(
        "call_tf", "variable", product, (x,), close(), natural=SEVERAL_STEPS, symbolic=axes(0)
    )
    ordered = call_tf(tf.negative, ordered=True)
    yield Harness("call_tf", "ordered", ordered, (x,), symbolic=every_axis)


@functools.cache
def _variable():
    """Made when it is first read, so that the list of harnesses does not start TensorFlow."""
    with tf.init_scope():
        return tf.Variable(np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4))


def _twice(x):
    return jax.ShapeDtypeStruct((2 * x.shape[0], *x.shape[1:]), x.dtype)


@harnesses
@symbolic(every_axis)
def programs():
    x = random((4, 3), np.float32)
    cosine = call_tf(tf.cos)
    positive = lambda x: lax.cond(x[0, 0] > 0, cosine, jnp.negative, x)  # noqa: E731
    yield Harness("call_tf", "branch", positive, (x,), close())
    loop = lambda x: lax.fori_loop(0, 3, lambda i, y: cosine(y) + i, x)  # noqa: E731
    yield Harness("call_tf", "loop", loop, (x,), close())
    steps = lambda x: lax.scan(lambda c, y: (c + cosine(y), cosine(c)), x[0], x)  # noqa: E731
    yield Harness("call_tf", "scan", steps, (x,), close_to_largest(ulps=8))
    mapped = jax.vmap(call_tf(lambda x: tf.cumsum(x, reverse=True)))
    yield Harness("call_tf", "vmap", mapped, (x,), close())
    back = call_tf(convert(lambda x: jnp.tanh(x) * x.sum(0)))
    yield Harness("call_tf", "converted", back, (x,), close())

    @tf.custom_gradient
    def square(x):
        return x * x, lambda g: 3 * x * g

    gradient = jax.grad(lambda x: jnp.sum(call_tf(square)(x) ** 2))
    yield Harness("call_tf", "gradient", gradient, (x,), close())
    second = jax.grad(lambda x: jnp.sum(jax.grad(lambda y: jnp.sum(cosine(y) ** 3))(x) ** 2))
    yield Harness("call_tf", "second_gradient", second, (x,), DERIVATIVES)
    twice = jax.grad(lambda x: jnp.sum(call_tf(tf.multiply)(x, x)))
    yield Harness("call_tf", "repeated_operand", twice, (x,), close())
    jvp = lambda x: jax.jvp(cosine, (x,), (x,))  # noqa: E731
    yield Harness("call_tf", "jvp", jvp, (x,), close(), natural=SEVERAL_STEPS)


@harnesses
def not_compiled():
    """XLA has no strings, so JAX runs the function by a callback."""
    digits = call_tf(lambda x: tf.strings.length(tf.strings.as_string(x)))
    yield Harness("call_tf", "strings", digits, (random((4, 3), np.int32),))
