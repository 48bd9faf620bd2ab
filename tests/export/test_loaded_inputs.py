"""What a loaded model takes: arrays, and numbers of Python, whose values it keeps."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from lowering import export


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Models of one input for each dtype."""
    made = {}
    for dtype in ("float32", "int32", "uint8", "bool"):
        path = tmp_path_factory.mktemp(dtype) / "model.onnx"
        shape = jax.ShapeDtypeStruct((2,), dtype)
        export.to_onnx(lambda x: jnp.where(x, x, x), (shape,), path, verify=False)
        made[dtype] = export.load(path)
    for dtype in ("bfloat16", "int4", "float8_e5m2"):  # TensorFlow alone takes them.
        path = tmp_path_factory.mktemp(dtype) / "model"
        export.to_saved_model(lambda x: x, (jax.ShapeDtypeStruct((2,), dtype),), path)
        made[dtype] = export.load(path)
    return made


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("float32", [1, 2]),
        ("float32", [0.5, 1]),
        ("float32", np.array([0.5, 1e300])),
        ("float32", jnp.array([1, 2])),
        ("float32", np.array([1, 2], ml_dtypes.bfloat16)),
        ("int32", [1, -2]),
        ("int32", np.array([1, 2])),
        ("int32", [True, False]),
        ("uint8", [1, 255]),
        ("bool", [True, False]),
        ("bool", [1, 0]),
        ("bfloat16", [0.5, 1]),
        ("bfloat16", np.array([0.5, 1])),
        ("float8_e5m2", np.array([1, 2], ml_dtypes.int4)),
        ("int4", [-8, 7]),
    ],
)
def test_values_are_kept(dtype, given, models):
    result = models[dtype](given)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(result, np.asarray(given).astype(dtype), strict=True)


@pytest.mark.parametrize("impl", ["threefry2x32", "rbg", "unsafe_rbg"])
@pytest.mark.parametrize("to", ["onnx", "tflite", "saved_model"])
def test_keys_are_given_as_they_are_or_as_their_data(to, impl, tmp_path):
    def draws(keys, x):
        return jax.vmap(jax.random.bits)(keys) ^ x

    keys, x = jax.random.split(jax.random.key(7, impl=impl), 3), np.uint32(5)
    suffix = f".{to}" if to in ("onnx", "tflite") else ""
    path = tmp_path / f"model{suffix}"
    getattr(export, f"to_{to}")(draws, (keys, x), path, verify=False)
    model, expected = export.load(path), jax.jit(draws)(keys, x)
    np.testing.assert_array_equal(model(keys, x), expected)
    np.testing.assert_array_equal(model(keys=jax.random.key_data(keys), x=x), expected)
    with pytest.raises(ValueError, match="cannot have the shape"):
        model(keys[0], x)


@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("float32", [1j, 2]),
        ("float32", ["1", "2"]),
        ("int32", [0.5, 1]),
        ("int32", np.array([0.5, 1])),
        ("int32", jnp.array([0.5, 1])),
        ("int32", np.array([2**40, 1])),
        ("int32", np.array([2**32 - 1, 1], np.uint32)),
        ("int32", [2**40, 1]),
        ("uint8", [-1, 1]),
        ("uint8", [256, 1]),
        ("uint8", np.array([1, 2])),
        ("bool", ["no", ""]),
        ("bool", [2, 0]),
        ("bfloat16", np.array([1j, 2])),
        ("float8_e5m2", np.array([1j, 2])),
        ("int4", np.array([0.5, 1])),
        ("int4", np.array([0.5, 1], ml_dtypes.bfloat16)),
        ("int4", [8, 0]),
    ],
)
def test_values_that_would_be_lost(dtype, given, models):
    with pytest.raises(TypeError, match=f"the input 'x' is {dtype}"):
        models[dtype](given)


def test_a_dtype_that_tensorflow_lacks(tmp_path):
    struct = jax.ShapeDtypeStruct((2,), "float8_e4m3")
    with pytest.raises(TypeError, match="TensorFlow has no dtype"):
        export.to_saved_model(lambda x: x, (struct,), tmp_path / "model")
