"""Products and extrema of segments, some of which are empty, as graph networks have them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export

_LEAST = np.finfo(np.float32).min
X = np.array([-np.inf, _LEAST, np.inf, -np.inf, 2, -np.inf, 7], np.float32)
IDS = np.array([0, 1, 3, 3, 4, 4, 9], np.int32)  # The last one is outside.

REDUCTIONS = {
    "maximum": lambda x, ids: jax.ops.segment_max(x, ids, 6),
    "minimum": lambda x, ids: jax.ops.segment_min(-x, ids, 6),
    "product": lambda x, ids: jax.ops.segment_prod(x, ids, 6),
    "integers": lambda x, ids: jax.ops.segment_max(2 * ids - 7, ids, 6),
    "vectors": lambda x, ids: jnp.full((3, 4), -jnp.inf).at[ids % 3, ids % 4].max(x),
    "windows": lambda x, ids: jnp.full((10, 4), jnp.inf).at[ids, 1:3].min(x[:, None]),
    "softmax": lambda x, ids: jnp.exp(ids - jax.ops.segment_max(ids, ids // 3, 4)[ids // 3]),
}


def _reduced(x, ids):
    return {name: fun(x, ids) for name, fun in REDUCTIONS.items()}


@pytest.mark.parametrize("shapes", [None, ["b", "b"]], ids=["known", "symbolic"])
@pytest.mark.parametrize("to", ["tflite", "onnx", "tfjs"])
def test_segments(to, shapes, tmp_path):
    path = tmp_path / "model"
    getattr(export, f"to_{to}")(_reduced, (X, IDS), path, polymorphic_shapes=shapes)
    found = export.load(path)(X, IDS)
    for name, expected in jax.jit(_reduced)(X, IDS).items():
        np.testing.assert_allclose(found[f"result_{name}"], expected, 1e-6, err_msg=name)


@pytest.mark.parametrize("to", ["tflite", "onnx"])
def test_nothing_is_sorted(to, tmp_path):
    """A runtime's own op is tens of times faster than a sort."""
    report = getattr(export, f"to_{to}")(_reduced, (X, IDS), tmp_path / "model")
    assert not {"TopK", "TOPK_V2"} & set(report.ops)
