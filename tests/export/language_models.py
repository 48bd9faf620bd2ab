"""Small language models, tokenizers, and what JAX writes, for the tests of their exports."""

import dataclasses
import inspect
import io
import string

import jax
import numpy as np

from harnesses.models import decoder_layers, decoder_linen, decoder_nnx
from lowering.export import language_models

VOCABULARY = 192
CAPACITY = 96
PREFILL = (8, 16)
GEMMA = dataclasses.replace(decoder_layers.GEMMA, vocabulary=VOCABULARY, layers=2)
QWEN = dataclasses.replace(decoder_layers.QWEN, vocabulary=VOCABULARY, layers=2)
MODULES = {"nnx": decoder_nnx, "linen": decoder_linen}
TEXTS = [line for module in (string, inspect) for line in inspect.getsource(module).splitlines()]


def sentencepiece_model():
    """The content of a file of SentencePiece with `VOCABULARY` tokens."""
    import sentencepiece

    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=file,
        vocab_size=VOCABULARY,
        model_type="bpe",
        minloglevel=2,
    )
    return file.getvalue()


def hugging_face():
    """A tokenizer of `tokenizers` with `VOCABULARY` tokens."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=["<s>", "</s>"], show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def arguments(step, params, sizes, **options):
    """The arguments of an export of a model."""
    cache = jax.eval_shape(lambda: sizes.empty(CAPACITY))
    return language_models.prefill_decode(
        step, cache, CAPACITY, params=params, **{"prefill": PREFILL, **options}
    )


def greedy(step, params, sizes, prompt, count, stop):
    """The most probable tokens after a prompt, until one that ends it."""
    step, cache, written = jax.jit(step), sizes.empty(CAPACITY), []
    for i in range(len(prompt) + count - 1):
        token = prompt[i] if i < len(prompt) else written[-1]
        positions = np.array([i], np.int32)
        mask = language_models.causal_mask(positions, CAPACITY, "float32")
        logits, cache = step(params, np.array([[token]], np.int32), positions, mask, cache)
        if i >= len(prompt) - 1:
            token = int(np.argmax(logits[0, 0]))
            if token == stop:
                break
            written.append(token)
    return written


def signatures():
    """The arguments of an export of a small model, as a command line names them."""
    step, params = decoder_nnx.decoder(QWEN, seed=0)
    return arguments(step, params, QWEN)
