"""qwix: quantized models."""

import flax.linen as nn
import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program


class _Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(5)(nn.relu(nn.Dense(16)(x)))


def _quantized(weights, activations, tolerance=1e-4):
    qwix = pytest.importorskip("qwix")
    rules = [qwix.QuantizationRule(weight_qtype=weights, act_qtype=activations)]
    x = np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)
    model = qwix.quantize_model(_Model(), qwix.PtqProvider(rules))
    whole = _Model().init(jax.random.key(0), x)["params"]
    abstract = jax.eval_shape(model.init, jax.random.key(0), x)["params"]
    params = qwix.quantize_params(whole, abstract)
    dtypes = jax.tree.map(lambda x: x.dtype, params)
    # XLA compiles no boundary of a TensorFlow function that 4 bits cross.
    passed = jax.tree.map(lambda x: x.astype("int8") if x.dtype == "int4" else x, params)

    def apply(params, x):
        params = jax.tree.map(lambda x, dtype: x.astype(dtype), params, dtypes)
        return model.apply({"params": params}, x)

    return Program(apply, (passed, x), tolerance=tolerance)


@program
def weights_of_8_bits():
    return _quantized("int8", None)


@program
def weights_and_activations_of_8_bits():
    # The largest number is halfway between two integers up to rounding, so it differs by a step.
    return _quantized("int8", "int8", tolerance=2e-2)


@program
def weights_of_4_bits():
    return _quantized("int4", None)
