"""The cases of jax2onnx: what counts as equal, as not JAX's, and as failed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tools.run_jax2onnx_cases import EQUAL, FAILED, NOT_IN_JAX, outcome

pytest.importorskip("onnxruntime")


def host(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


@pytest.mark.parametrize(
    ("case", "kind"),
    [
        ({"callable": jnp.sin, "input_shapes": [(3, 4)]}, EQUAL),
        ({"callable": jnp.sin, "input_shapes": [("B", 4)]}, EQUAL),
        ({"callable": jnp.add, "input_values": [np.ones(3), np.arange(3)]}, EQUAL),
        ({"callable": jnp.add, "input_shapes": [("B", 4), (3,)]}, NOT_IN_JAX),
        ({"callable": jnp.arange, "input_shapes": [(3,)]}, NOT_IN_JAX),
        ({"callable": host, "input_shapes": [(3,)]}, FAILED),
        (
            {
                "callable": jnp.sum,
                "input_shapes": [(3, 4)],
                "input_dtypes": [np.int32],
                "input_params": {"axis": 1},
            },
            EQUAL,
        ),
    ],
)
def test_outcomes(case, kind):
    assert outcome(case, "float32").kind == kind
