"""NaN for numbers that are missing decides about finite results, so it is as in JAX."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from lowering import export

_RNG = np.random.default_rng(0)
X = np.round(_RNG.normal(size=(3, 9)) * 3).astype(np.float32) + np.float32(0.5)
X[_RNG.random(X.shape) < 0.3] = np.nan
Y = np.float32([np.nan, 3, np.inf, -2, np.nan, -np.inf, 3, np.finfo(np.float32).max, np.inf, 0])


def summaries(x, y):
    finite = jnp.where(y == jnp.inf, 1, y)
    return (
        [jnp.nanmedian(x, -1), jnp.nanmedian(x, 0), jnp.median(x, 0)],
        jnp.nanquantile(x, jnp.float32([0.1, 0.3, 0.9])),
        [jnp.nanmax(x, 0), jnp.nanmin(x), jnp.nanmean(x), jnp.nanstd(x, 0)],
        [jnp.nanargmax(x, 0), jnp.nanargmin(x, 1)],
        [jnp.sort(y), jnp.argsort(y), jnp.sort(y, descending=True), jnp.sort(x, 0)],
        lax.sort((jnp.round(y), y[::-1], jnp.arange(10)), num_keys=2),
        jnp.unique(y, size=8, return_index=True, return_inverse=True, return_counts=True),
        jnp.sort(jnp.where(y > 0, y, jnp.nan))[:4],
        lax.top_k(finite, 4),
        jnp.sort(y.astype(jnp.bfloat16)).astype(jnp.float32),
    )


@pytest.mark.parametrize("to", ["portable", "tflite", "onnx"])
def test_summaries(to, tmp_path):
    if to == "portable":
        export.to_saved_model(summaries, (X, Y), tmp_path / "model", target=to)
    else:
        getattr(export, f"to_{to}")(summaries, (X, Y))
