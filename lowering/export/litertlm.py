"""Export to a `.litertlm` file, which LiteRT-LM runs: a TF Lite model, a tokenizer and metadata."""

import logging
import os
import pathlib
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax

from lowering.export import (
    language_models,
    limits,
    litertlm_prompts,
    litertlm_runs,
    litertlm_signatures,
    paths,
    reports,
    tflite,
    vocabularies,
)
from lowering.export.arguments import check_count, check_flags
from lowering.export.descriptions import DECODE
from lowering.export.entries import entries
from lowering.export.packages import import_package
from lowering.export.reports import Report
from lowering.export.verification import check_tolerance
from lowering.export.vocabularies import Tokenizer
from lowering.export.without_64_bits import in_bits_of
from lowering.targets import TFLITE

_log = logging.getLogger("lowering.export")
_EXTRA = "litertlm"

# Who says something in a conversation, each with a text before and after it.
ROLES = ("system", "user", "model")


def to_litertlm(
    fun: Mapping[str, Any],
    args: Mapping[str, Any],
    path: str | os.PathLike[str],
    *,
    tokenizer: Any,
    stop_tokens: Sequence[int | str],
    params: Any = None,
    polymorphic_shapes: Any = None,
    polymorphic_constraints: Any = None,
    input_names: Any = None,
    output_names: Any = None,
    start_token: int | str | None = None,
    templates: Mapping[str, tuple[str, str]] | str | None = None,
    max_tokens: int | None = None,
    quantize: Any = None,
    verify: bool = True,
    tolerance: float | None = None,
    overwrite: bool = False,
) -> Report:
    """Writes a language model as a file that LiteRT-LM runs; returns a report on its model.

    `prefill_decode` makes the first arguments of one function. By hand, they are a function
    `decode` and one or more of which the names begin with `prefill`, with the inputs `tokens`,
    `input_pos`, `mask` if they have a mask, and `kv_cache_k_0`, `kv_cache_v_0` and so on; the
    outputs are those of the cache by the same names, and the `logits` of decode.

    Args:
      fun: functions by the names of their signatures.
      args: the arguments of each, as for `to_tflite`.
      path: the file to write.
      tokenizer: the path of a file of SentencePiece or of a `tokenizer.json`, its content, or an
        object of `sentencepiece` or `tokenizers`.
      params: a pytree of arrays that the model keeps; it is the first argument of each function.
      polymorphic_shapes: as for `to_tflite`. LiteRT-LM takes no sizes that are symbolic, so they
        are an error, which says what to do.
      polymorphic_constraints: as for `to_tflite`.
      input_names: the names of the leaves of `args`, as for `to_tflite`.
      output_names: the names of the leaves of the results.
      stop_tokens: the tokens that end an answer, by their numbers or their texts.
      start_token: the token that comes before a prompt.
      templates: what stands before and after what is said, by who says it: "system", "user" and
        "model"; or a template in Jinja of a whole conversation.
      max_tokens: how many tokens a conversation may have; by default those of the mask.
      quantize: as for `to_tflite`.
      verify: whether to compare the model with JAX in LiteRT's interpreter, and what LiteRT-LM
        writes with what JAX writes.
      tolerance: as for `to_tflite`.
      overwrite: whether a file at `path` is replaced.

    Raises:
      ImportError: if a package is missing.
      FileExistsError: if there is something at `path`.
      TypeError: if `fun` is one function, as that of `decode_any_length`.
      ValueError: for signatures that LiteRT-LM does not take, a cache whose shapes differ between
        them, a tokenizer of another vocabulary, or tokens that it lacks; for a model that reads
        padding, or what earlier conversations have left in the cache.
      UnsupportedError: if the model needs an op that LiteRT lacks, or LiteRT-LM refuses the
        tokenizer or the file.
      VerificationError: if the model does not compute, or write, what JAX does.
    """
    if not isinstance(fun, Mapping):
        raise TypeError(
            "LiteRT-LM calls functions of known lengths, as export.prefill_decode makes them by "
            "name; export.decode_any_length makes one function for other runtimes"
        )
    import_package("litert_lm_builder", _EXTRA)
    if verify:
        import_package("litert_lm", _EXTRA)
        import_package("ai_edge_litert.interpreter", "tflite")
    tflite.check_options(quantize, None, None)
    check_tolerance(tolerance)
    check_flags(verify=verify, overwrite=overwrite)
    limits.check_params("a TF Lite model", params)
    if isinstance(stop_tokens, str) or not isinstance(stop_tokens, Iterable):
        example = [stop_tokens] if isinstance(stop_tokens, str | int) else ["</s>"]
        raise TypeError(f"stop_tokens are several, such as {example}; found {stop_tokens!r}")
    if max_tokens is not None:
        check_count("max_tokens", max_tokens)
    paths.checked(path, "litertlm")
    loaded = vocabularies.load(tokenizer)
    numbers = [loaded.number(token) for token in stop_tokens]
    if not numbers:
        raise ValueError("stop_tokens is empty; LiteRT-LM needs a token that ends an answer")
    start = None if start_token is None else loaded.number(start_token)
    _check_templates(templates)
    if verify:
        _check_tokenizer(loaded)
    with in_bits_of(TFLITE), reports.making(path, "litertlm", overwrite) as making:
        written = pathlib.Path(making.path or path)
        _log.info("lowering for LiteRT-LM")
        made = entries(
            fun,
            args,
            TFLITE,
            params=params,
            polymorphic_shapes=polymorphic_shapes,
            polymorphic_constraints=polymorphic_constraints,
            input_names=input_names,
            output_names=output_names,
        )
        capacity = litertlm_signatures.check(made, max_tokens)
        litertlm_signatures.check_vocabulary(made[DECODE], loaded.size)
        if verify:
            litertlm_prompts.check(made)
        model = tflite.of_entries(
            making,
            made,
            {},
            quantize=quantize,
            io_dtype=None,
            allow_flex=False,
            verify=verify,
            tolerance=tolerance,
        )
        metadata = _metadata(start, numbers, templates, capacity)
        with tempfile.TemporaryDirectory() as folder:
            _bundle(pathlib.Path(folder), written, model, loaded, metadata)
        if verify:
            _log.info("running the file in LiteRT-LM")
            litertlm_runs.verify(
                written,
                model,
                made,
                start,
                numbers,
                capacity=capacity,
                vocabulary=loaded.size,
                is_quantized=quantize is not None,
                has_templates=templates is not None,
            )
        return making.report()


def _check_tokenizer(tokenizer: Tokenizer) -> None:
    """Lets LiteRT-LM read a tokenizer in a file with a tiny model, before there is a large one.

    Raises:
      UnsupportedError: if LiteRT-LM refuses it.
    """

    def step(tokens: jax.Array, positions: jax.Array, mask: jax.Array, cache: Any) -> Any:
        logits = (tokens + positions)[..., None] + mask[0].sum(-1, keepdims=True)
        return logits, [x + positions[0] for x in cache]

    cache = [jax.ShapeDtypeStruct((1, 1, 1, 1), "float32")] * 2
    model = tflite.to_tflite(
        **language_models.prefill_decode(step, cache, 1, prefill=(1,)), verify=False
    )
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path = folder / "model.litertlm"
        _bundle(folder, path, model, tokenizer, _metadata(None, [0], None, 1))
        with litertlm_runs.Runner(path, "read the tokenizer") as runner:
            runner.call("tokenize", text="a")


def _check_templates(templates: Any) -> None:
    """Raises an error for templates that are none: of unknown speakers, or no pairs of strings."""
    if templates is None or isinstance(templates, str):
        return
    if not isinstance(templates, Mapping):
        raise TypeError(
            f"templates are pairs of texts by who speaks, or a template in Jinja; not {templates!r}"
        )
    for role, affixes in templates.items():
        if role not in ROLES:
            raise ValueError(f"templates are of {', '.join(ROLES)}; not of {role!r}")
        if (
            not isinstance(affixes, tuple | list)
            or len(affixes) != 2
            or not all(isinstance(x, str) for x in affixes)
        ):
            raise ValueError(
                f"the template of {role} is two texts, before and after; not {affixes!r}"
            )


def _metadata(start: int | None, stop: Sequence[int], templates: Any, max_tokens: int) -> bytes:
    """The metadata of a language model, as LiteRT-LM reads it."""
    protos = import_package("litert_lm_builder.runtime.proto.llm_metadata_pb2", _EXTRA)
    metadata = protos.LlmMetadata(max_num_tokens=max_tokens)
    metadata.llm_model_type.generic_model.SetInParent()
    metadata.supports_thinking = metadata.supports_function_calling = False
    if start is not None:
        metadata.start_token.token_ids.ids.append(start)
    for number in stop:
        metadata.stop_tokens.add().token_ids.ids.append(number)
    if isinstance(templates, str):
        metadata.jinja_prompt_template = templates
    for role, (before, after) in ({} if isinstance(templates, str) else templates or {}).items():
        of_role = getattr(metadata.prompt_templates, role)
        of_role.prefix, of_role.suffix = before, after
    return metadata.SerializeToString()


def _bundle(
    folder: pathlib.Path, path: pathlib.Path, model: bytes, tokenizer: Tokenizer, metadata: bytes
) -> None:
    """Writes the file of its parts, which the builder reads from a folder."""
    builder_of = import_package("litert_lm_builder.litertlm_builder", _EXTRA)
    builder = builder_of.LitertLmFileBuilder()
    parts = {
        "metadata.pb": metadata,
        f"tokenizer{tokenizer.suffix}": tokenizer.data,
        "model.tflite": model,
    }
    for name, content in parts.items():
        (folder / name).write_bytes(content)
    of_metadata, of_tokenizer, of_model = (str(folder / name) for name in parts)
    builder.add_llm_metadata(of_metadata)
    if tokenizer.suffix == ".json":
        builder.add_hf_tokenizer(of_tokenizer)
    else:
        builder.add_sentencepiece_tokenizer(of_tokenizer)
    builder.add_tflite_model(of_model, builder_of.TfLiteModelType.PREFILL_DECODE)
    with path.open("wb") as file:
        builder.build(file, validate_metadata=True)
