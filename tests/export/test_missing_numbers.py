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


# More than 600, from which on TF.js selects in another way.
MANY = _RNG.choice(np.append(Y, [7, 8, -np.finfo(np.float32).max]), (2, 700)).astype(np.float32)


def positions(x, y):
    limits = jnp.sort(y)
    # Where `top_k` puts NaN among infinities is open.
    finite = [jnp.where(values == jnp.inf, 1, values) for values in (y, MANY)]
    numbers = [jnp.where(jnp.isnan(values), 1, values) for values in (y, MANY)]
    return (
        [lax.top_k(values, k)[1] for values in (finite[0], numbers[0]) for k in (2, 5, 10)],
        [lax.top_k(finite[1], 300)[1], lax.top_k(numbers[1], 600)[1]],
        lax.top_k(x, 4)[1],
        [jnp.argsort(y), jnp.argsort(x, 0), lax.sort((y, jnp.arange(10)), num_keys=1)[1]],
        [
            jnp.searchsorted(limits, jnp.append(x, -y), side=side, method=method)
            for side, method in (("left", "scan"), ("right", "compare_all"), ("left", "sort"))
        ],
        [jnp.digitize(x, limits), jnp.searchsorted(y, x, sorter=jnp.argsort(y))],
    )


@pytest.mark.parametrize("to", ["portable", "tflite", "onnx", "tfjs"])
@pytest.mark.parametrize("fun", [summaries, positions], ids=lambda fun: fun.__name__)
def test_missing_numbers(to, fun, tmp_path):
    if to == "portable":
        export.to_saved_model(fun, (X, Y), tmp_path / "model", target=to)
    else:
        folder = [tmp_path / "model"] if to == "tfjs" else []
        getattr(export, f"to_{to}")(fun, (X, Y), *folder)


def test_positions_in_browsers(check):
    check(positions, X, Y)
