"""Sums of so many integers that those of 32 bits wrap around, too; see `reduce_sum_by_product`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export

_COUNT = 70_000
SUMS = {
    "all": jnp.sum,
    "rows": lambda x, **options: jnp.sum(x, 1, **options),
    "columns": lambda x, **options: jnp.sum(x, 0, **options),
    "kept axes": lambda x, **options: jnp.sum(x, 1, keepdims=True, **options),
}


def _sums(x):
    return {name: total(x, dtype=x.dtype) for name, total in SUMS.items()}


@pytest.mark.parametrize("shapes", [None, ["b, n"]], ids=["known", "symbolic"])
@pytest.mark.parametrize("to", ["tflite", "onnx"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32])
def test_sums_wrap_around(dtype, to, shapes, tmp_path):
    x = np.full((2, _COUNT), np.iinfo(dtype).max, dtype)
    path = tmp_path / "model"
    getattr(export, f"to_{to}")(_sums, (x,), path, polymorphic_shapes=shapes)
    found = export.load(path)(x)
    for name, expected in jax.jit(_sums)(x).items():
        actual = found[f"result_{name.replace(' ', '_')}"]
        np.testing.assert_array_equal(actual, expected, name, strict=True)


def test_one_product_for_each_sum():
    model = export.to_onnx(lambda x: jnp.sum(x, 1), (np.ones((3, 1000), np.int32),))
    assert model.ops["MatMul"] == 1 and sum(model.ops.values()) <= 2
