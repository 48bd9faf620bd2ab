"""Activations of products of two matrices that the model computes or takes.

See `tflite.quirks.activations_of_products`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

FORMS = {
    "relu": lambda x, w: jax.nn.relu(x @ w),
    "relu6": lambda x, w: jax.nn.relu6(x @ w),
    "maximum": lambda x, w: jnp.maximum(x @ w, 0),
    "clip to 1": lambda x, w: jnp.clip(x @ w, -1, 1),
    "clip from 0": lambda x, w: jnp.clip(x @ w, 0, 1),
    "a transpose": lambda x, w: jax.nn.relu((x @ w).T),
    "a reshape": lambda x, w: jax.nn.relu((x @ w).reshape(2, 2, -1)),
    "more axes": lambda x, w: jax.nn.relu((x @ w)[None, :, None]),
    "another use": lambda x, w: jax.nn.relu(x @ w) + x @ w,
    "a transposed operand": lambda x, w: jax.nn.relu(x.T @ x),
    "two transposed operands": lambda x, w: jax.nn.relu(w.T @ x.T),
    "a second product": lambda x, w: jax.nn.relu(x @ (w @ np.full((5, 2), -1, np.float32))),
    "a loop": lambda x, w: lax.fori_loop(0, 2, lambda i, w: jax.nn.relu(-x.T @ (x @ w)) - i, w),
    "a branch": lambda x, w: lax.cond(x[0, 0] > 9, jnp.dot, lambda x, w: jax.nn.relu(x @ w), x, w),
    "integers": lambda x, w: jax.nn.relu(x.astype(int) @ w.astype(int)),
}


def _apply(x, w):
    return {form: fun(x, w) for form, fun in FORMS.items()}


X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(3, 5)).astype(np.float32)


@pytest.mark.parametrize("to", ["tflite", "onnx", "tfjs"])
def test_activations_are_kept(to, tmp_path):
    report = getattr(export, f"to_{to}")(_apply, (X, W), tmp_path / "model")
    assert len(report.outputs) == len(FORMS)


def test_symbolic_sizes():
    forms = {name: FORMS[name] for name in ("relu", "clip to 1", "a transposed operand")}
    export.to_tflite(
        lambda x, w: {name: fun(x, w) for name, fun in forms.items()},
        (X, W),
        polymorphic_shapes=["m, k", "k, n"],
    )


def test_weights_have_no_more_ops():
    """Products with weights keep their activation within one op."""
    model = export.to_tflite(lambda w, x: jax.nn.relu(x @ w), (X,), params=W)
    assert dict(model.ops) == {"FULLY_CONNECTED": 1}
