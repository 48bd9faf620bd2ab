"""Models that TensorFlow of two minor versions ago loads, runs and differentiates, without JAX."""

import os
import pathlib
import subprocess
import sys
import tempfile
import venv

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
from jax import lax

from lowering import convert
from lowering.versions import TENSORFLOW

MAJOR, MINOR = map(int, TENSORFLOW.oldest.split("."))
OLDER = f"{MAJOR}.{MINOR - 2}"
# The last Python that it is published for.
LAST_PYTHON = (3, 12)

VECTOR = np.float32([0.5, -1.5, 2.0, 3.0])
MATRIX = np.float32([[1, 2, 0, 1], [0.5, 3, -1, 2], [2, 0, 1, -0.5]])
IMAGES = np.linspace(-1, 1, 2 * 6 * 5 * 3, dtype=np.float32).reshape(2, 6, 5, 3)
KERNEL = np.linspace(-1, 1, 3 * 2 * 3 * 4, dtype=np.float32).reshape(3, 2, 3, 4)
INDICES = np.int32([[1], [7], [1], [-2]])
WORDS = np.uint32([12, 34])


def _convolution(x, kernel):
    return lax.conv_general_dilated(
        x,
        kernel,
        (2, 1),
        [(1, -1), (0, 2)],
        lhs_dilation=(2, 1),
        rhs_dilation=(1, 2),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _random(words):
    key = jax.random.wrap_key_data(words)
    bits = jax.random.bits(key, (7,)), jax.random.permutation(key, 10)
    return *bits, jax.random.normal(jax.random.fold_in(key, 5), (3, 4))


def _symmetric(x):
    product = x @ x.T + jnp.eye(x.shape[0])
    return jnp.linalg.cholesky(product), jnp.linalg.solve(product, x), jnp.linalg.eigvalsh(product)


def _integers(i):
    return (
        i // 0,
        i % 0,
        i << 40,
        jnp.max(i),
        lax.population_count(i),
        lax.convert_element_type(VECTOR * 1e10, np.int16),
    )


# The functions of one model, and what they are called with.
PROGRAMS = {
    "while": (lambda x: lax.while_loop(lambda y: jnp.sum(y) < 99, lambda y: y * y, x), [VECTOR]),
    "cond": (lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), [VECTOR]),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.exp], x), [np.int32(1), VECTOR]),
    "scan": (lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x), [MATRIX]),
    "scatter": (lambda x, i: x.at[i[:, 0]].add(2.0, mode="drop"), [VECTOR, INDICES]),
    "gather": (lambda x, i: x.at[i[:, 0]].get(mode="fill"), [VECTOR, INDICES]),
    "dynamic": (lambda x, i: lax.dynamic_update_slice(x, x[:2] * 2, i), [VECTOR, INDICES[1]]),
    "random": (_random, [WORDS]),
    "sort": (
        lambda x: (jnp.sort(x, axis=1), jnp.argsort(-x, axis=0), lax.top_k(x, 2)),
        [np.where(MATRIX == 0, np.float32(np.nan), MATRIX)],
    ),
    "conv": (_convolution, [IMAGES, KERNEL]),
    "pool": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 3, 1), (1, 2, 1, 1), "SAME"),
        [IMAGES],
    ),
    "dot": (lambda x, y: jnp.einsum("nhwc,cd->ndhw", x, y), [IMAGES, MATRIX]),
    "complex": (
        lambda x: (jnp.abs(jnp.fft.fft(x * (1 + 2j))), jnp.sqrt(x - 1j).conj() @ x.T, jnp.angle(x)),
        [MATRIX],
    ),
    "linear_algebra": (_symmetric, [MATRIX]),
    "integers": (_integers, [INDICES]),
    "16-bit": (lambda x: jnp.cumsum(x.astype(jnp.bfloat16)).astype(float), [VECTOR]),
    "special": (lambda x: (lax.erf_inv(x / 4), lax.lgamma(x), lax.igamma(x**2, x**2)), [VECTOR]),
}


def test_saved_models_run_in_an_older_tensorflow(tmp_path):
    module = tf.Module()
    arrays = {}
    for name, (fun, args) in PROGRAMS.items():
        converted = tf.function(convert(fun, target="tf"), autograph=False)
        setattr(module, name, converted.get_concrete_function(*map(tf.constant, args)))
        _keep(arrays, name, args, jax.jit(fun)(*args))

    def model(w, x):
        hidden = jnp.tanh(_convolution(x, w))
        return lax.map(lambda y: jnp.sum(jnp.max(y, 0) ** 2), hidden)

    module.w = tf.Variable(KERNEL)
    converted = convert(model, target="tf", polymorphic_shapes=[None, "(b, ...)"])
    module.model = tf.function(
        lambda x: converted(module.w, x),
        autograph=False,
        input_signature=[tf.TensorSpec([None, *IMAGES.shape[1:]])],
    )
    gradients = jax.grad(lambda w, x: model(w, x).sum(), (0, 1))(KERNEL, IMAGES)
    _keep(arrays, "gradient", [IMAGES], gradients)
    options = tf.saved_model.SaveOptions(experimental_custom_gradients=True)
    tf.saved_model.save(module, tmp_path / "model", options=options)
    np.savez(tmp_path / "arrays.npz", **arrays)

    program = pathlib.Path(__file__).parent / "older_tensorflow.py"
    result = subprocess.run(
        [_older_tensorflow(), "-I", program, tmp_path], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    version, *compared = result.stdout.split()
    assert version.startswith(f"{OLDER}.")
    assert sorted(compared) == sorted([*PROGRAMS, "gradient"])


def _keep(arrays, name, args, results):
    """Keeps the arguments and results of a function among arrays by name."""
    for kind, values in {"arguments": args, "results": jax.tree.leaves(results)}.items():
        arrays.update({f"{name}/{kind}/{i}": value for i, value in enumerate(values)})


def _older_tensorflow() -> pathlib.Path:
    """The interpreter of an environment that has the older TensorFlow, and no JAX.

    It is made in the user's cache, where it takes 1.4 GB.
    """
    if sys.version_info[:2] > LAST_PYTHON:
        pytest.skip(f"TensorFlow {OLDER} is not published for this Python")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    major, minor, *_ = sys.version_info
    environment = cache / "lowering" / f"tensorflow-{OLDER}-python-{major}.{minor}"
    if not environment.exists():
        environment.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=environment.parent) as directory:
            made = pathlib.Path(directory) / "environment"
            venv.create(made, symlinks=True)
            pip = [sys.executable, "-m", "pip", "--python", made / "bin" / "python"]
            subprocess.run([*pip, "install", "--quiet", f"tensorflow-cpu == {OLDER}.*"], check=True)
            # It appears when it is complete.
            made.rename(environment)
    return environment / "bin" / "python"
