"""Consumers compute with the parts of complex numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

import lowering
from lowering.export.entries import entry
from lowering.targets import CONSUMERS, TARGETS

RNG = np.random.default_rng(0)
Z = (RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))).astype(np.complex64)
W = (RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3))).astype(np.complex64)
FUNCTIONS = {
    "sum": lambda z, w: z + w,
    "difference": lambda z, w: z - 2 * w,
    "product": lambda z, w: z * w,
    "quotient": lambda z, w: z / w,
    "equal": lambda z, w: (z == w, z != z),
    "exp": lambda z, w: jnp.exp(z) + jnp.log(w),
    "abs": lambda z, w: (jnp.abs(z), jnp.conj(w), z.real, w.imag),
    "matmul": lambda z, w: z @ w.T,
    "reductions": lambda z, w: (z.sum(0), w.prod(1), jnp.cumsum(z, 1)),
    "moves": lambda z, w: (jnp.concatenate([z, w.T])[::-1], z[1:, :2], jnp.pad(w, 1), z.ravel()),
    "where": lambda z, w: jnp.where(z.real > 0, z, w),
    "gather": lambda z, w: (z[jnp.array([0, 2, 1])], w.at[1].add(z[0])),
    "known": lambda z, w: z * (1 + 2j) + np.eye(3) * 1j,
    "of reals": lambda z, w: (lax.complex(z.real, w.real), z.real.astype("complex64")),
    "sort": lambda z, w: jnp.sort(z, 0),
    "fft": lambda z, w: (jnp.fft.fft(z), jnp.fft.ifft2(w)),
    "rfft": lambda z, w: (jnp.fft.rfft(z.real), jnp.fft.irfft(w, 4), jnp.fft.irfft2(w, (3, 5))),
    "solve": lambda z, w: jnp.linalg.solve(z, w),
    "eigh": lambda z, w: jnp.linalg.eigvalsh(z + jnp.conj(z.T)),
    "while": lambda z, w: lax.while_loop(lambda s: jnp.abs(s[0, 0]) < 9, lambda s: s * 2j, z),
    "scan": lambda z, w: lax.scan(lambda c, e: (c * e, c + e), z[0], w),
    "cond": lambda z, w: lax.cond(z[0, 0].real > 0, lambda: z, lambda: w),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_numbers(name):
    fun = FUNCTIONS[name]
    expected = jax.tree_util.tree_leaves(jax.jit(fun)(Z, W))
    converted = lowering.convert(fun, target="onnx", with_gradient=False)
    actual = tf.nest.flatten(tf.function(converted, autograph=False)(Z, W))
    for e, a in zip(expected, actual, strict=True):
        assert a.dtype == e.dtype
        np.testing.assert_allclose(a, e, rtol=1e-4, atol=1e-5)


def test_infinite_parts_beside_numbers_that_are_known():
    def fun(z):
        return z + np.array([1 + 2j, 1 + 3j, 1 + 4j], np.complex64), np.complex64(3j) - z

    z = np.array([complex(1, np.inf), complex(-np.inf, 2), 0], np.complex64)
    converted = lowering.convert(fun, target="onnx", with_gradient=False)
    for e, a in zip(fun(z), tf.function(converted, autograph=False)(z), strict=True):
        np.testing.assert_array_equal(a, e)


@pytest.mark.parametrize("target", CONSUMERS)
def test_no_tensor_of_an_exported_graph_is_complex(target):
    made = entry(FUNCTIONS["matmul"], (Z, W), TARGETS[target])
    needed = {x.op for x in tf.nest.flatten(made.concrete.structured_outputs)}
    seen = set()
    while needed:
        op = needed.pop()
        seen.add(op)
        assert not any(x.dtype.is_complex for x in op.outputs), op
        needed |= {x.op for x in op.inputs} - seen
    assert [spec.shape.as_list() for spec in made.specs] == [[3, 3, 2], [3, 3, 2]]
    assert set(made.dtypes.values()) == {np.dtype(np.complex64)}


def test_a_function_with_branch_cuts():
    converted = lowering.convert(jnp.arcsinh, target="tflite", with_gradient=False)
    found = tf.function(converted, autograph=False)(Z)
    np.testing.assert_allclose(found, jnp.arcsinh(Z), 1e-5)


def test_what_consumers_cannot_split_is_named():
    def fun(z):
        return jax.pure_callback(lambda x: x, z, z * z)

    converted = lowering.convert(fun, target="onnx", with_gradient=False)
    with pytest.raises(lowering.UnsupportedError, match=r"pure_callback\(c64\[3,3\]\).*call back"):
        tf.function(converted, autograph=False)(Z)


def test_what_is_printed_is_left_out():
    def fun(z):
        jax.debug.print("{}", z)
        return z * 2

    converted = lowering.convert(fun, target="tflite", with_gradient=False)
    with pytest.warns(UserWarning, match="is left out for target 'tflite'"):
        found = tf.function(converted, autograph=False)(Z)
    np.testing.assert_array_equal(found, Z * 2)
