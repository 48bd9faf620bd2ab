"""transformers: its models in Flax, which versions before 5 have."""

import jax
import numpy as np
import pytest

from tests.frameworks.programs import Program, program

WORDS = np.random.default_rng(0).integers(3, 40, (2, 6)).astype(np.int32)
SMALL = {
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 32,
    "vocab_size": 40,
    "max_position_embeddings": 32,
}


def _model(name, config, **options):
    """A model of a class, with random weights; `config` names the class of its settings."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, name):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    return getattr(transformers, name)(getattr(transformers, config)(**options), input_shape=(1, 6))


@program
def bert():
    model = _model("FlaxBertModel", "BertConfig", **SMALL)

    def encode(params, words, mask):
        found = model(words, attention_mask=mask, params=params)
        return found.last_hidden_state, found.pooler_output

    mask = np.int32([[1] * 6, [1] * 4 + [0] * 2])
    return Program(encode, (model.params, WORDS, mask), differentiable=True)


@program
def gpt2_that_generates():
    model = _model(
        "FlaxGPT2LMHeadModel",
        "GPT2Config",
        n_layer=2,
        n_head=2,
        n_embd=16,
        vocab_size=40,
        n_positions=32,
        bos_token_id=1,
        eos_token_id=2,
    )

    def generate(params, words, key):
        return model.generate(
            words,
            params=params,
            prng_key=jax.random.wrap_key_data(key),
            do_sample=True,
            top_k=5,
            max_length=10,
            pad_token_id=0,
        ).sequences

    return Program(generate, (model.params, WORDS, np.uint32([0, 1])))


@program
def bart_with_beams():
    """In place of T5, whose code calls `jnp.clip` with arguments that JAX has removed."""
    model = _model(
        "FlaxBartForConditionalGeneration",
        "BartConfig",
        vocab_size=40,
        max_position_embeddings=32,
        d_model=16,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
    )

    def generate(params, words):
        found = model.generate(words, params=params, num_beams=2, max_length=6)
        return found.sequences, found.scores

    return Program(generate, (model.params, WORDS))
