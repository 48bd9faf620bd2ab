"""Decoders of other people's libraries are written for LiteRT-LM, which writes what JAX does.

Their caches are [1, places, heads, features], and they compute their masks themselves. One of those
whose library is installed takes its turn; LOWERING_TURNS=all runs all.
"""

import importlib.util
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from lowering import export
from tests.export import language_models
from tests.helpers import run_tests_alone
from tests.turns import ALL, number

CAPACITY, LAYERS, HEADS, KEY_HEADS, FEATURES = 32, 2, 4, 2, 8
WINDOW = 6
SIZES = {
    "vocab_size": language_models.VOCABULARY,
    "num_hidden_layers": LAYERS,
    "hidden_size": HEADS * FEATURES,
    "intermediate_size": 48,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
    "max_position_embeddings": CAPACITY,
}
OF_KERAS = {
    "vocabulary_size": language_models.VOCABULARY,
    "num_layers": LAYERS,
    "hidden_dim": HEADS * FEATURES,
    "intermediate_dim": 48,
    "num_query_heads": HEADS,
    "num_key_value_heads": KEY_HEADS,
}


def of_transformers(name, **options):
    """The step, the cache and the parameters of a model in Flax, which versions before 5 have."""
    transformers = pytest.importorskip("transformers")
    if not hasattr(transformers, f"Flax{name}"):
        pytest.skip(f"transformers {transformers.__version__} has no models in Flax")
    config = getattr(transformers, f"{name.partition('For')[0].removesuffix('LMHeadModel')}Config")
    model = getattr(transformers, f"Flax{name}")(config(**options), input_shape=(1, 4))
    leaves, tree = jax.tree.flatten(model.init_cache(1, CAPACITY))
    places = [i for i, x in enumerate(leaves) if x.ndim]

    def step(params, tokens, positions, mask, cache):
        # The others say how many tokens the cache has.
        given = [positions[0]] * len(leaves)
        for i, x in zip(places, cache, strict=True):
            given[i] = x
        found = model(
            tokens,
            params=params,
            past_key_values=jax.tree.unflatten(tree, given),
            attention_mask=jnp.ones((1, CAPACITY), "int32"),
            position_ids=positions[None],
        )
        updated = jax.tree.leaves(found.past_key_values)
        return found.logits, [updated[i] for i in places]

    return step, [jax.eval_shape(lambda i=i: leaves[i]) for i in places], model.params


def of_keras_hub(name, **options):
    """The same of a model of KerasHub, which has one cache of all layers."""
    keras_hub = pytest.importorskip("keras_hub")
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(0)
    backbone = getattr(keras_hub.models, f"{name}Backbone")(**OF_KERAS, **options)
    model = getattr(keras_hub.models, f"{name}CausalLM")(backbone, preprocessor=None)
    params = [np.asarray(variable) for variable in model.variables]

    def step(params, tokens, positions, mask, cache):
        mapping = list(zip(model.variables, params, strict=True))
        pairs = [jnp.stack(cache[i : i + 2], 1) for i in range(0, len(cache), 2)]
        with keras.StatelessScope(state_mapping=mapping):
            logits, _, updated = model.call_with_cache(tokens, jnp.stack(pairs, 1), positions[0])
        return logits, [updated[:, i, j] for i in range(LAYERS) for j in range(2)]

    spec = jax.ShapeDtypeStruct((1, CAPACITY, KEY_HEADS, FEATURES), "float32")
    return step, [spec] * (2 * LAYERS), params


class Flax(nnx.Module):
    """A decoder whose layers keep their caches themselves, and read one token at a time."""

    def __init__(self, rngs):
        features = HEADS * FEATURES
        self.embed = nnx.Embed(language_models.VOCABULARY, features, rngs=rngs)
        self.layers = nnx.List(
            [nnx.MultiHeadAttention(HEADS, features, decode=True, rngs=rngs) for _ in range(LAYERS)]
        )

    def __call__(self, token):
        x = self.embed(token)
        for layer in self.layers:
            x = x + layer(x)
        return self.embed.attend(x)


def of_flax():
    """The same of a model of Flax's own attention; a prefill is a scan over its tokens."""
    model = Flax(nnx.Rngs(0))
    for layer in model.layers:
        layer.init_cache((1, CAPACITY, HEADS * FEATURES))
    graph, params, kept, rest = nnx.split(model, nnx.Param, nnx.Cache, ...)
    leaves, tree = jax.tree.flatten(nnx.to_pure_dict(kept))
    places = [i for i, x in enumerate(leaves) if x.ndim]

    def step(params, tokens, positions, mask, cache):
        def read(cache, of_token):
            token, position = of_token
            # The others say how many tokens the cache has.
            given = [position.astype(x.dtype) for x in leaves]
            for i, x in zip(places, cache, strict=True):
                given[i] = x
            state = jax.tree.unflatten(tree, given)
            merged = nnx.merge(graph, params, state, rest)
            logits = merged(token[None, None])
            updated = jax.tree.leaves(nnx.to_pure_dict(nnx.state(merged, nnx.Cache)))
            return [updated[i] for i in places], logits[0, 0]

        cache, logits = jax.lax.scan(read, cache, (tokens[0], positions))
        return logits[None], cache

    params = jax.tree.map(np.asarray, nnx.to_pure_dict(params))
    return step, [jax.eval_shape(lambda i=i: leaves[i]) for i in places], params


DECODERS = {
    "flax": of_flax,
    "transformers-gpt2": lambda: of_transformers(
        "GPT2LMHeadModel",
        vocab_size=language_models.VOCABULARY,
        n_layer=LAYERS,
        n_embd=HEADS * FEATURES,
        n_head=HEADS,
        n_positions=CAPACITY,
    ),
    "transformers-mistral": lambda: of_transformers(
        "MistralForCausalLM", **SIZES, sliding_window=WINDOW
    ),
    "keras_hub-qwen3": lambda: of_keras_hub("Qwen3", head_dim=FEATURES),
    "keras_hub-mistral": lambda: of_keras_hub("Mistral", sliding_window=WINDOW),
}
INSTALLED = [x for x in DECODERS if importlib.util.find_spec(x.partition("-")[0])]
IN_TURN = sorted(INSTALLED, key=lambda name: number("decoders", name))[:1]


@pytest.mark.parametrize("name", sorted(DECODERS if ALL else IN_TURN))
def test_a_decoder(name, tmp_path):
    for package in ("litert_lm", "litert_lm_builder", "tokenizers"):
        pytest.importorskip(package)
    # Keras chooses its backend when it is imported.
    if name.startswith("keras_hub") and os.environ.get("KERAS_BACKEND") != "jax":
        run_tests_alone(pathlib.Path(__file__), name, LOWERING_TURNS="all", KERAS_BACKEND="jax")
        return
    step, cache, params = DECODERS[name]()
    export.to_litertlm(
        **export.prefill_decode(step, cache, CAPACITY, prefill=(8,), params=params),
        path=tmp_path / "model.litertlm",
        tokenizer=language_models.hugging_face(),
        start_token="<s>",
        stop_tokens=["</s>"],
    )
    of_any_length = export.decode_any_length(step, cache, CAPACITY, params=params)
    export.to_onnx(**of_any_length, path=tmp_path / "model.onnx")
