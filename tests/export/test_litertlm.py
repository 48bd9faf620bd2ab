"""Language models as files that LiteRT-LM runs."""

import dataclasses
import json
import re
import sys
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowering import export
from lowering.__main__ import main
from lowering.commands import files
from lowering.errors import UnsupportedError
from lowering.export import litertlm
from tests.export import language_models as models

# With 64 tokens after it, each fits into the cache.
PROMPTS = ("import string", "def f(x):\n    return x", "the module " * 5)


@pytest.fixture(scope="module")
def sentencepiece():
    pytest.importorskip("sentencepiece")
    return models.sentencepiece_model()


@pytest.fixture(scope="module")
def hugging_face():
    pytest.importorskip("tokenizers")
    return models.hugging_face()


def written_by(path, prompts, count):
    """The texts that LiteRT-LM writes, the tokens of the prompts, and a function from tokens."""
    litert_lm = pytest.importorskip("litert_lm")
    greedy = litert_lm.SamplerConfig(top_k=1)
    with litert_lm.Engine(str(path), cache_dir=":nocache") as engine:
        for prompt in prompts:
            session = engine.create_session(
                apply_prompt_template=False, sampler_config=greedy, max_output_tokens=count
            )
            with session:
                session.run_prefill([prompt])
                yield engine.tokenize(prompt), session.run_decode().texts[0], engine.detokenize


@pytest.mark.parametrize(
    ("sizes", "kind", "tokens"),
    [(models.GEMMA, "nnx", "sentencepiece"), (models.QWEN, "linen", "hugging_face")],
)
def test_litert_lm_writes_what_jax_writes(sizes, kind, tokens, request, tmp_path):
    pytest.importorskip("litert_lm")
    pytest.importorskip("litert_lm_builder")
    step, params = models.MODULES[kind].decoder(sizes, seed=0)
    path = tmp_path / "model.litertlm"
    export.to_litertlm(
        **models.arguments(step, params, sizes),
        path=path,
        tokenizer=request.getfixturevalue(tokens),
        start_token="<s>",
        stop_tokens=["</s>"],
    )
    start = 1 if tokens == "sentencepiece" else 0
    size = sum(x.nbytes for x in jax.tree.leaves(params))
    assert path.stat().st_size < 2 * size
    for prompt, text, detokenize in written_by(path, PROMPTS, 64):
        assert len(prompt) + 64 <= models.CAPACITY
        expected = models.greedy(step, params, sizes, [start, *prompt], 64, stop=start + 1)
        assert text == detokenize(expected)


@pytest.mark.parametrize(("mask", "quantize"), [("bool", None), (None, "int8")])
def test_other_masks_and_quantized_weights_are_verified(mask, quantize, hugging_face, tmp_path):
    """The exporter compares what LiteRT-LM writes: with JAX, or with LiteRT if it is quantized."""
    for package in ("litert_lm", "litert_lm_builder", "ai_edge_quantizer"):
        pytest.importorskip(package)
    sizes = dataclasses.replace(models.QWEN, layers=1)
    step, params = models.MODULES["nnx"].decoder(sizes, seed=0)

    def masked(params, tokens, positions, *rest):
        seen = jnp.arange(models.CAPACITY) <= positions[:, None]
        seen = rest[0] if mask else seen[None, None]
        return step(params, tokens, positions, jnp.where(seen, 0.0, -1e9), rest[-1])

    path = tmp_path / "model.litertlm"
    export.to_litertlm(
        **models.arguments(masked, params, sizes, mask=mask, prefill=(8,)),
        path=path,
        tokenizer=hugging_face,
        stop_tokens=["</s>"],
        max_tokens=models.CAPACITY,
        quantize=quantize,
    )
    assert path.exists()


def test_what_jax_rounds_more_often_is_compared_with_litert(hugging_face, tmp_path):
    """Of bfloat16, JAX rounds each product, and so writes something else than LiteRT."""
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    rng = np.random.default_rng(0)
    embedding, head = (0.3 * rng.normal(size=(models.VOCABULARY, 32)) for _ in range(2))
    embedding[:, 0], head[:, 0] = 20, 1
    params = {"embedding": jnp.bfloat16(embedding), "head": jnp.bfloat16(head.T)}
    params["bias"] = np.float32(0.3 * rng.normal(size=models.VOCABULARY) - 20)

    def step(params, tokens, positions, mask, cache):
        rounded = params["embedding"][tokens] @ params["head"]
        return rounded.astype("float32") + params["bias"], [x + positions[0] for x in cache]

    cache = [jax.ShapeDtypeStruct((1, 1, models.CAPACITY, 4), "float32")] * 2
    path = tmp_path / "model.litertlm"
    export.to_litertlm(
        **export.prefill_decode(step, cache, models.CAPACITY, prefill=(8,), params=params),
        path=path,
        tokenizer=hugging_face,
        stop_tokens=["</s>"],
    )
    assert path.exists()


@pytest.mark.parametrize(("places", "is_enough"), [(13, True), (6, False)])
def test_a_rolling_cache_has_places_for_a_window_and_a_prefill(
    places, is_enough, hugging_face, tmp_path
):
    """Padding is written over the oldest tokens, which the next ones would still see."""
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    window, prefill, features = 6, 8, 16
    rng = np.random.default_rng(0)
    shapes = {"embed": (models.VOCABULARY, features), "head": (features, models.VOCABULARY)}
    shapes |= {name: (features, features) for name in ("query", "key", "value")}
    params = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}

    def step(params, tokens, positions, mask, cache):
        x = params["embed"][tokens[0]]
        keys, values = (
            kept.at[0, 0, positions % places].set(x @ params[name])
            for name, kept in zip(("key", "value"), cache, strict=True)
        )
        age = (positions[:, None] - jnp.arange(places)) % places
        is_seen = (age < window) & (age <= positions[:, None])
        scores = x @ params["query"] @ keys[0, 0].T / features**2  # All tokens matter.
        weights = jax.nn.softmax(jnp.where(is_seen, scores, -1e9))
        return ((weights @ values[0, 0]) @ params["head"])[None], [keys, values]

    cache = [jax.ShapeDtypeStruct((1, 1, places, features), "float32")] * 2
    given = export.prefill_decode(step, cache, 32, prefill=(prefill,), params=params)
    path = tmp_path / "model.litertlm"
    options = {"path": path, "tokenizer": hugging_face, "stop_tokens": ["</s>"]}
    if is_enough:
        export.to_litertlm(**given, **options)
    else:
        with pytest.raises(ValueError, match=r"the logits depend on tokens of padding"):
            export.to_litertlm(**given, **options)
    assert path.exists() == is_enough


def recurrent(*, keeps_at_padding=True, begins_anew=True):
    """A step whose cache is the state of a recurrent network, and its arguments."""
    features = 16
    rng = np.random.default_rng(0)
    shapes = {"embed": (models.VOCABULARY, features), "head": (features, models.VOCABULARY)}
    shapes["cell"] = (features, features)
    params = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}

    def step(params, tokens, positions, mask, cache):
        first = (positions[0] == 0) & begins_anew
        is_token = (mask[0, 0] > -1).any(-1) | (not keeps_at_padding)

        def cell(state, token):
            number, is_read = token
            updated = jnp.tanh(params["embed"][number] + state @ params["cell"])
            state = jnp.where(is_read, updated, state)
            return state, state @ params["head"]

        state = jnp.where(first, 0, cache[0][0, 0])
        state, logits = jax.lax.scan(cell, state, (tokens[0], is_token))
        return logits[None], [state[None, None], *cache[1:]]

    cache = [jax.ShapeDtypeStruct((1, 1, features), "float32")] * 2
    return {"step": step, "cache": cache, "capacity": 64, "params": params}


def test_a_recurrent_model_writes_what_jax_writes(hugging_face, tmp_path):
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    path = tmp_path / "model.litertlm"
    given = export.prefill_decode(**recurrent(), prefill=(4, 8))
    export.to_litertlm(**given, path=path, tokenizer=hugging_face, stop_tokens=["</s>"])
    assert path.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keeps_at_padding": False}, "the logits depend on tokens of padding"),
        ({"begins_anew": False}, "numbers of the cache that no token of the prompt has written"),
    ],
)
def test_a_state_that_keeps_padding_or_another_conversation_is_an_error(
    options, message, hugging_face, tmp_path
):
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    given = export.prefill_decode(**recurrent(**options), prefill=(4, 8))
    given = {**given, "verify": True, "max_tokens": None}
    refused(tmp_path, message, tokenizer=hugging_face, stop_tokens=["</s>"], **given)


def test_a_state_of_one_array_is_an_error_of_litert_lm_alone(tmp_path):
    pytest.importorskip("litert_lm_builder")
    model = recurrent()
    model["cache"] = model["cache"][:1]
    given = export.prefill_decode(**model, prefill=(4,))
    refused(tmp_path, "at least one of k and one of v", tokenizer=vocabulary(192), **given)
    export.to_tflite(**given, path=tmp_path / "model.tflite")
    found = export.inspect(tmp_path / "model.tflite").signatures
    assert sorted(found) == ["decode", "prefill_4"]


@pytest.mark.parametrize("kind", ["sentencepiece", "hugging_face"])
def test_a_tokenizer_that_litert_lm_refuses_is_an_error_before_the_conversion(
    kind, request, tmp_path, monkeypatch
):
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    tokenizer = request.getfixturevalue(kind)
    if kind == "sentencepiece":
        parts = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
        proto = parts.ModelProto.FromString(tokenizer)
        proto.pieces[6].piece = proto.pieces[5].piece
        tokenizer, message = proto.SerializeToString(), "is already defined"
    else:
        content = json.loads(tokenizer.to_str())
        content["pre_tokenizer"]["type"] = "Words"
        tokenizer, message = json.dumps(content).encode(), "PreTokenizer"
    monkeypatch.setattr(litertlm, "entries", None)
    message = f"LiteRT-LM failed to read the tokenizer: .*{message}"
    refused(tmp_path, message, UnsupportedError, tokenizer=tokenizer, verify=True)


def test_functions_of_any_length_are_an_error(tmp_path):
    pytest.importorskip("litert_lm_builder")
    given = export.decode_any_length(**recurrent())
    message = r"functions of known lengths, as export\.prefill_decode makes them"
    refused(tmp_path, message, TypeError, tokenizer=vocabulary(192), **given)


def bundle(tmp_path, step=None, tokenizer=b"", **options):
    """Writes a file of a model without layers, which nothing runs."""

    def plain(params, tokens, positions, mask, cache):
        keys, values = cache
        logits = jnp.zeros((1, tokens.shape[1], models.VOCABULARY)) + params
        return logits + mask.sum() + positions[0], (keys + tokens[0, 0], values + 1)

    cache = jax.ShapeDtypeStruct((1, 1, 16, 4), "float32")
    given = export.prefill_decode(
        step or plain, (cache, cache), 16, params=np.float32(1), prefill=(4,)
    )
    given = {**given, "stop_tokens": [0], "verify": False, "tokenizer": tokenizer, **options}
    export.to_litertlm(path=tmp_path / "folder" / "model.litertlm", **given)


def test_files_are_read_without_litert_lm(tmp_path, monkeypatch, capsys):
    pytest.importorskip("litert_lm_builder")
    bundle(tmp_path, tokenizer=vocabulary(192), start_token=1, stop_tokens=[0, 2])
    path = tmp_path / "folder" / "model.litertlm"
    described = export.inspect(path)
    assert described.format == "litertlm" and described.size == path.stat().st_size
    assert sorted(described.signatures) == ["decode", "prefill_4"]
    assert described.metadata == {
        "tokenizer": "Hugging Face",
        "capacity": "16 tokens",
        "start": "1",
        "stop": "0, 2",
    }
    decode = export.load(path)
    cache = np.ones((1, 1, 16, 4), np.float32)
    mask = np.zeros((1, 1, 1, 16), np.float32)
    found = decode([[3]], [2], mask, cache, cache)
    np.testing.assert_array_equal(found["logits"], np.full((1, 1, models.VOCABULARY), 3))
    np.testing.assert_array_equal(found["kv_cache_k_0"], cache + 3)
    assert decode.signatures["prefill_4"].inputs[0].shape == (1, 4)

    shown = []
    viewer = types.SimpleNamespace(
        start=lambda graph: shown.append(export.inspect(graph).signatures), wait=lambda: None
    )
    monkeypatch.setitem(sys.modules, "netron", viewer)
    monkeypatch.setattr(files, "is_installed", lambda module: module == "netron")
    assert main(["visualize", str(path), "--with", "netron"]) == 0
    assert shown == [described.signatures]

    for length in (9, 100, path.stat().st_size // 2):
        (tmp_path / "part.litertlm").write_bytes(path.read_bytes()[:length])
        for command in ("inspect", "run", "visualize"):
            assert main([command, str(tmp_path / "part.litertlm")]) == 2
            assert "part.litertlm" in capsys.readouterr().err
    header = "litert_lm_builder.litertlm_header_schema_py_generated"
    monkeypatch.setitem(sys.modules, header, None)
    with pytest.raises(ImportError, match="needs litert_lm_builder"):
        export.load(path)


def refused(tmp_path, message, error=ValueError, **options):
    """Expects an error, and nothing left behind."""
    with pytest.raises(error, match=message):
        bundle(tmp_path, **options)
    assert not list(tmp_path.iterdir())


def vocabulary(size):
    """A tokenizer.json with so many tokens."""
    return json.dumps({"model": {"vocab": {f"t{i}": i for i in range(size)}}}).encode()


@pytest.mark.parametrize("size", [models.VOCABULARY // 2, models.VOCABULARY + 1])
def test_a_tokenizer_of_another_vocabulary_is_an_error(size, tmp_path):
    pytest.importorskip("litert_lm_builder")
    message = f"another vocabulary: it has {size} tokens, and the model logits of 192"
    refused(tmp_path, message, tokenizer=vocabulary(size))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        # The letters of a text might be tokens.
        ({"stop_tokens": "t1"}, r"stop_tokens are several, such as \['t1'\]"),
        ({"stop_tokens": 1}, r"stop_tokens are several, such as \[1\]; found 1"),
        ({"stop_tokens": None}, "stop_tokens are several, .*; found None"),
        ({"max_tokens": 7.5}, "max_tokens is a whole number, not 7.5"),
        ({"max_tokens": "8"}, "max_tokens is a whole number, not '8'"),
        ({"templates": 3}, "templates are pairs of texts by who speaks, or .*; not 3"),
        ({"templates": [("user", "")]}, "templates are pairs of texts by who speaks"),
    ],
)
def test_options_of_other_types_are_errors(options, message, tmp_path):
    pytest.importorskip("litert_lm_builder")
    refused(tmp_path, message, TypeError, **{"tokenizer": vocabulary(192), **options})


def test_a_file_needs_a_path():
    pytest.importorskip("litert_lm_builder")
    with pytest.raises(TypeError, match=r"path is a str or a pathlib\.Path"):
        export.to_litertlm({}, {}, None, tokenizer=vocabulary(9), stop_tokens=[0], verify=False)


def test_logits_of_whole_numbers_are_an_error(tmp_path):
    """LiteRT-LM would refuse them when it writes the first token."""
    pytest.importorskip("litert_lm_builder")

    def step(params, tokens, positions, mask, cache):
        return jnp.zeros((1, tokens.shape[1], 192), "int32") + positions[0], cache

    message = "logits of decode has to be float32 or float16, .*; found int32"
    refused(tmp_path, message, tokenizer=vocabulary(192), step=step)


def test_a_template_that_cannot_be_filled_in_is_an_error(hugging_face, tmp_path):
    """LiteRT-LM reads it when someone says something."""
    for package in ("litert_lm", "litert_lm_builder"):
        pytest.importorskip(package)
    sizes = dataclasses.replace(models.QWEN, layers=1)
    step, params = models.MODULES["nnx"].decoder(sizes, seed=0)
    with pytest.raises(UnsupportedError, match=r"Failed to apply template: .*syntax error"):
        export.to_litertlm(
            **models.arguments(step, params, sizes, prefill=(8,)),
            path=tmp_path / "model.litertlm",
            tokenizer=hugging_face,
            stop_tokens=["</s>"],
            templates="{% for message in",
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("size", [models.VOCABULARY - 2, 129])
def test_a_padded_vocabulary_is_one_of_the_tokenizer(size, tmp_path):
    """To a multiple of 128, or by a small part."""
    pytest.importorskip("litert_lm_builder")
    bundle(tmp_path, tokenizer=vocabulary(size), stop_tokens=np.array([3, 4]))
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["model.litertlm"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokenizer": b"nothing"}, "no model of SentencePiece, and no tokenizer.json"),
        ({"tokenizer": b"{}"}, "no tokenizer.json"),
        ({"stop_tokens": ["<end>"]}, "the tokenizer has no token '<end>'; it has 192"),
        ({"stop_tokens": [192]}, "the tokenizer has no token 192"),
        ({"stop_tokens": []}, "stop_tokens is empty"),
        ({"tolerance": -1}, "tolerance is a number of at least 0"),
        ({"tokenizer": b'{"model": {"vocab": {}}}'}, "a tokenizer.json without tokens"),
        ({"stop_tokens": [True]}, "the tokenizer has no token True"),
        ({"max_tokens": 0}, "max_tokens is at least 1, not 0"),
        ({"start_token": "<s>"}, "the tokenizer has no token '<s>'"),
        (
            {"templates": {"robot": ("", "")}},
            "templates are of system, user, model; not of 'robot'",
        ),
        ({"templates": {"user": ("<u>",)}}, "the template of user is two texts"),
        ({"templates": {"user": None}}, "the template of user is two texts"),
        ({"max_tokens": 17}, "max_tokens is 17, and the cache has room for 16"),
        ({"quantize": "int7"}, "quantize is one of"),
    ],
)
def test_bad_options_are_errors(options, message, tmp_path):
    pytest.importorskip("litert_lm_builder")
    refused(tmp_path, message, **{"tokenizer": vocabulary(192), **options})


def unmasked(places, mask=None):
    """A model of 16 tokens with a cache of some shape, and a mask that it does not read."""
    cache = (jax.ShapeDtypeStruct(places, "float32"),) * 2

    def step(tokens, positions, *rest):
        return jnp.zeros((1, tokens.shape[1], 192)) + positions[0], [x + 1 for x in rest[-1]]

    given = export.prefill_decode(step, cache, 16, prefill=(4,), mask=mask)
    return {**given, "tokenizer": vocabulary(192), "max_tokens": 16}


@pytest.mark.parametrize("places", [(1, 16, 2, 4), (16, 4), (1, 2, 15, 16)])
def test_without_a_mask_the_third_axis_of_a_cache_has_to_be_its_places(places, tmp_path):
    """LiteRT-LM would end a text early, or refuse a prompt."""
    pytest.importorskip("litert_lm_builder")
    message = f"third axis of kv_cache_k_0.* its shape is {re.escape(str(places))}"
    refused(tmp_path, message, **unmasked(places))


@pytest.mark.parametrize(
    ("places", "mask"), [((1, 2, 16, 4), None), ((1, 2, 20, 4), None), ((1, 16, 2, 4), "bool")]
)
def test_other_caches_are_written(places, mask, tmp_path):
    pytest.importorskip("litert_lm_builder")
    bundle(tmp_path, **unmasked(places, mask))
    assert (tmp_path / "folder" / "model.litertlm").exists()


def test_padding_has_positions_behind_those_of_the_tokens():
    """LiteRT-LM says that they are 0, where a scatter would write padding."""

    def step(tokens, positions, cache):
        keys, values = (x.at[:, :, positions].set(tokens[0, :, None] * 1.0) for x in cache)
        return jnp.zeros((1, tokens.shape[1], 9)), (keys, values)

    cache = (jnp.zeros((1, 1, 16, 4)),) * 2
    given = export.prefill_decode(step, cache, 16, prefill=(4,), mask=None)
    tokens, positions = np.array([[5, 6, 0, 0]]), np.array([13, 14, 0, 0])
    keys, _ = given["fun"]["prefill_4"](tokens, positions, cache)
    np.testing.assert_array_equal(keys[0, 0, :, 0], [*[0] * 13, 5, 6, 0])


def decode_args(cache=(1, 1, 16, 4), mask=(1, 1, 1, 16), names=("tokens", "input_pos", "mask")):
    """Other arguments of decode, and names of its inputs."""
    spec = jax.ShapeDtypeStruct
    kept = (spec(cache, "float32"), spec(cache, "float32"))
    given = spec((1, 1), "int32"), spec((1,), "int32"), spec(mask, "float32"), kept
    return given, [*names, "kv_cache_k_0", "kv_cache_v_0"]


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (
            decode_args(cache=(1, 1, 32, 4)),
            r"kv_cache_k_0 is float32 \(1, 1, 32, 4\) in the inputs",
        ),
        (decode_args(mask=(1, 1, 1, 32)), "the masks of signatures have different columns"),
        (decode_args(mask=(1, 1, 16)), "mask of decode has to be float32 or bool"),
        (decode_args(names=("ids", "input_pos", "mask")), "the inputs tokens, input_pos, mask"),
    ],
)
def test_signatures_that_do_not_fit_each_other_are_errors(decode, message, tmp_path):
    pytest.importorskip("litert_lm_builder")
    args, names = decode
    given = export.prefill_decode(
        lambda tokens, positions, mask, cache: (jnp.zeros((1, 1, 192)), cache),
        (jax.ShapeDtypeStruct((1, 1, 16, 4), "float32"),) * 2,
        16,
        prefill=(4,),
    )
    given["args"]["decode"], given["input_names"]["decode"] = args, names
    refused(tmp_path, message, tokenizer=vocabulary(192), **given)


def test_a_file_without_decode_is_an_error(tmp_path):
    pytest.importorskip("litert_lm_builder")
    x = np.zeros(3, np.float32)
    refused(
        tmp_path,
        "LiteRT-LM calls 'decode' and functions whose names begin with 'prefill'; found encode",
        tokenizer=vocabulary(192),
        fun={"encode": lambda params, x: x},
        args={"encode": (x,)},
        input_names=None,
        output_names=None,
    )


def test_parameters_that_no_file_holds_are_an_error_before_the_work(tmp_path):
    large = np.broadcast_to(np.float16(0), (2**29,))
    with pytest.raises(UnsupportedError, match=r"the weights have 2\.1 GB"):
        export.to_tflite(lambda params, x: x, (np.zeros(1, np.float32),), params=large)
    pytest.importorskip("litert_lm_builder")
    refused(
        tmp_path,
        r"the weights have 2\.1 GB",
        tokenizer=vocabulary(192),
        params=large,
        error=UnsupportedError,
    )


@pytest.mark.parametrize(
    ("options", "message", "error"),
    [
        ({"prefill": (32,)}, "lengths from 1 to 16", ValueError),
        ({"prefill": ()}, "lengths from 1 to 16", ValueError),
        ({"prefill": (0,)}, "a length of prefill is at least 1", ValueError),
        ({"prefill": 8}, "prefill is several lengths", TypeError),
        ({"prefill": "8"}, "prefill is several lengths", TypeError),
        ({"prefill": (8.0,)}, "a length of prefill is a whole number, not 8.0", TypeError),
        ({"capacity": 16.0}, "capacity is a whole number", TypeError),
        ({"capacity": 0}, "capacity is at least 1", ValueError),
        ({"cache": [3, 4]}, r"cache takes arrays, not 3 at cache\[0\]", TypeError),
        (
            {"cache": (jax.ShapeDtypeStruct((1, *jax.export.symbolic_shape("n")), "float32"),) * 2},
            r"cache takes known sizes; found \(1, n\) at cache\[0\]",
            TypeError,
        ),
        (
            {"params": {"name": "gpt"}},
            r"params takes arrays, not 'gpt' at params\['name'\]",
            TypeError,
        ),
        ({"step": 3}, "expected the step of a language model, a JAX function, not int", TypeError),
        (
            {"step": lambda tokens, mask, cache: (tokens, cache)},
            r"expected the arguments of .*\(tokens, mask, cache\); found 4 arguments",
            TypeError,
        ),
        ({"mask": "int8"}, "mask is one of float32, bool", ValueError),
        ({"cache": ()}, "a cache has at least one array", ValueError),
        ({"step": lambda tokens, *_: tokens}, "has to return", TypeError),
        ({"step": lambda t, p, m, cache: (t, cache)}, r"\[1, 1, vocabulary\]", TypeError),
        (
            {"step": lambda t, p, m, cache: (jnp.zeros((1, 1, 9)), [x[:, :, 1:] for x in cache])},
            "has to return a cache like the one it is given",
            TypeError,
        ),
    ],
)
def test_steps_that_are_none_are_errors(options, message, error):
    def step(tokens, positions, mask, cache):
        return jnp.zeros((1, tokens.shape[1], 9)), cache

    cache = (np.zeros((1, 1, 16, 4), np.float32),) * 2
    given = {"step": step, "cache": cache, "capacity": 16, "prefill": (4,), **options}
    with pytest.raises(error, match=message):
        export.prefill_decode(**given)


def test_a_command_writes_a_file(hugging_face, tmp_path, capsys):
    pytest.importorskip("litert_lm_builder")
    tokenizer, output = tmp_path / "tokenizer.json", tmp_path / "model.litertlm"
    hugging_face.save(str(tokenizer))
    command = ["export", "tests.export.language_models:signatures", "--to", "litertlm"]
    command += ["--output", str(output), "--no-verify"]
    assert main(command) == 2
    assert "needs --tokenizer and --stop-token" in capsys.readouterr().err
    command += ["--tokenizer", str(tokenizer), "--stop-token", "</s>", "--stop-token", "0"]
    assert main([*command, "--start-token", "<s>", "--quantize", "int9"]) == 2
    assert main([*command, "--start-token", "<s>"]) == 0
    assert output.read_bytes().startswith(b"LITERTLM")
