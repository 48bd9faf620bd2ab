"""e3nn: networks that are equivariant under rotations."""

import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

RNG = np.random.default_rng(0)


@program
def tensor_products():
    e3nn = pytest.importorskip("e3nn_jax")

    def features(positions):
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", positions, normalize=False)
        products = e3nn.tensor_product(harmonics, harmonics)
        return products.filter(lmax=2).array, e3nn.norm(harmonics).array

    positions = RNG.normal(size=(4, 3)).astype(np.float32)
    return Program(features, (positions,), differentiable=True)


@program
def message_passing():
    e3nn = pytest.importorskip("e3nn_jax")
    linen = pytest.importorskip("flax.linen")

    class Layer(linen.Module):
        @linen.compact
        def __call__(self, features, positions, senders, receivers):
            edges = positions[receivers] - positions[senders]
            harmonics = e3nn.spherical_harmonics("0e + 1o", edges, normalize=True)
            messages = e3nn.tensor_product(features[senders], harmonics)
            mixed = e3nn.flax.Linear("8x0e + 4x1o")(messages)
            gathered = e3nn.scatter_sum(mixed, dst=receivers, output_size=len(positions))
            return e3nn.gate(e3nn.flax.Linear("8x0e + 2x1o")(gathered))

    layer = Layer()

    def apply(params, positions, features, senders, receivers):
        features = e3nn.IrrepsArray("4x0e", features)
        return layer.apply(params, features, positions, senders, receivers).array

    positions = RNG.normal(size=(5, 3)).astype(np.float32)
    features = RNG.normal(size=(5, 4)).astype(np.float32)
    edges = np.int32([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 0, 2]])
    params = layer.init(jax.random.key(0), e3nn.IrrepsArray("4x0e", features), positions, *edges)
    return Program(apply, (params, positions, features, *edges), differentiable=True)
