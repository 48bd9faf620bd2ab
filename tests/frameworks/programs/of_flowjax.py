"""flowjax: normalizing flows."""

import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)


def _flow(name, **options):
    flows = pytest.importorskip("flowjax.flows")
    distributions = pytest.importorskip("flowjax.distributions")
    equinox = pytest.importorskip("equinox")
    flow = getattr(flows, name)(
        jax.random.key(0),
        base_dist=distributions.Normal(np.zeros(3, np.float32)),
        flow_layers=2,
        **options,
    )
    params, rest = equinox.partition(flow, equinox.is_inexact_array)
    return params, lambda params: equinox.combine(params, rest)


@program
def masked_autoregressive_flow():
    params, flow = _flow("masked_autoregressive_flow", nn_width=8)
    return Program(lambda params, x: flow(params).log_prob(x), (params, X), differentiable=True)


@program
def samples_of_a_coupling_flow():
    params, flow = _flow("coupling_flow", nn_width=8)

    def sample(params, words):
        return flow(params).sample_and_log_prob(jax.random.wrap_key_data(words), (3,))

    return Program(sample, (params, np.uint32([0, 1])))


@program
def block_neural_autoregressive_flow():
    params, flow = _flow("block_neural_autoregressive_flow")
    return Program(lambda params, x: flow(params).log_prob(x), (params, X))
