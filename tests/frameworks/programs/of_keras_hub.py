"""KerasHub: its models, where Keras computes with JAX."""

import numpy as np
import pytest

from tests.frameworks.programs import Program, program


@program
def gemma_that_generates():
    keras_hub = pytest.importorskip("keras_hub")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    backbone = keras_hub.models.GemmaBackbone(
        vocabulary_size=40,
        num_layers=2,
        num_query_heads=2,
        num_key_value_heads=1,
        hidden_dim=16,
        intermediate_dim=32,
        head_dim=8,
    )
    model = keras_hub.models.GemmaCausalLM(backbone)
    model.compile(sampler="greedy")

    def generate(variables, words, mask):
        mapping = list(zip(model.variables, variables, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return model.generate_step({"token_ids": words, "padding_mask": mask})["token_ids"]

    words = np.int32([[2, 5, 9, 7, 0, 0, 0, 0], [2, 8, 3, 0, 0, 0, 0, 0]])
    variables = [np.asarray(variable) for variable in model.variables]
    return Program(generate, (variables, words, words > 0))
