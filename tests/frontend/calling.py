"""A function of TensorFlow with its twin in JAX, and comparisons of what calls give."""

import contextlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from jax import lax

X = np.float32([0.5, 1.5, -2.0])


def same(actual, expected, rtol=1e-5):
    """Compares two pytrees of arrays."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, e in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert jnp.shape(a) == jnp.shape(e) and a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=rtol, atol=1e-6)


@contextlib.contextmanager
def warned(count):
    """A context in which so many warnings say that a function runs by a callback."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    assert sum("by a callback" in str(w.message) for w in found) == count


def fun_tf(x):
    return tf.sin(x) * x + tf.exp(x / 4)


def fun_jax(x):
    return jnp.sin(x) * x + jnp.exp(x / 4)


def summed(f):
    return lambda x: f(x).sum()


TRANSFORMATIONS = {
    "none": lambda f: f,
    "jit": jax.jit,
    "grad": lambda f: jax.grad(summed(f)),
    "jit_grad": lambda f: jax.jit(jax.grad(summed(f))),
    "grad_jit": lambda f: jax.grad(jax.jit(summed(f))),
    "value_and_grad": lambda f: jax.value_and_grad(summed(f)),
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](x),
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (jnp.cos(x),)),
    "jit_jvp": lambda f: jax.jit(lambda x: jax.jvp(f, (x,), (jnp.cos(x),))),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "jacfwd": jax.jacfwd,
    "jacrev": jax.jacrev,
    "hessian": lambda f: jax.hessian(summed(f)),
    "jit_hessian": lambda f: jax.jit(jax.hessian(summed(f))),
    "forward_over_forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse_over_reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "reverse_over_forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "third": lambda f: jax.vmap(jax.grad(jax.grad(jax.grad(f)))),
    "vmap": jax.vmap,
    "jit_vmap": lambda f: jax.jit(jax.vmap(f)),
    "vmap_vmap": lambda f: lambda x: jax.vmap(jax.vmap(f, 1, 1), 2)(jnp.tile(x, (2, 3, 4, 1))),
    "vmap_grad": lambda f: jax.vmap(jax.grad(f)),
    "grad_vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
    "jit_grad_vmap": lambda f: jax.jit(jax.grad(lambda x: jax.vmap(f)(x).sum())),
    "jvp_vmap": lambda f: lambda x: jax.jvp(jax.vmap(f), (x,), (x,)),
    "vmap_of_a_constant": lambda f: jax.vmap(lambda y: f(jnp.float32(2)) * y),
    "map": lambda f: lambda x: lax.map(f, x),
    "scan": lambda f: lambda x: lax.scan(lambda c, y: (f(c) / 2, y), x, jnp.ones((3, 2))),
    "grad_scan": lambda f: jax.grad(
        lambda x: lax.scan(lambda c, y: (f(c) / 2, y), x, jnp.ones(3))[0].sum()
    ),
    "cond": lambda f: lambda x: lax.cond(x[0] > 0, f, lambda x: x, x),
    "grad_cond": lambda f: jax.grad(lambda x: lax.cond(x[0] > 0, f, lambda x: x, x).sum()),
    "while": lambda f: lambda x: lax.while_loop(lambda c: c.sum() < 9, lambda c: f(c) + 1, x),
    "fori": lambda f: lambda x: lax.fori_loop(0, 3, lambda i, c: f(c) / 2, x),
    "checkpoint": lambda f: jax.grad(summed(jax.checkpoint(f))),
    "eval_shape": lambda f: lambda x: jnp.zeros_like(jax.eval_shape(f, x)),
    "ahead_of_time": lambda f: lambda x: jax.jit(f).lower(x).compile()(x),
    "exported": lambda f: lambda x: jax.export.export(jax.jit(f))(x).call(x),
}
