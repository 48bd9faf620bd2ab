"""Language models of one function, which reads prompts of any length and writes."""

import numpy as np
import pytest

from lowering import export
from lowering.export import language_models
from tests.export import language_models as models

PROMPTS = ("a", "def f(x):\n    return x")


def arguments(module, sizes):
    step, params = models.MODULES[module].decoder(sizes, seed=0)
    cache = sizes.empty(models.CAPACITY)
    return step, params, export.decode_any_length(step, cache, models.CAPACITY, params=params)


def written_by(session, prompt, count):
    """The most probable tokens after a prompt, which is read at once."""
    inputs = {x.name: x for x in session.get_inputs()}
    cache = {
        name: np.zeros(x.shape, np.float32) for name, x in inputs.items() if name.startswith("kv")
    }
    begin, tokens, written = 0, np.array(prompt, np.int32), []
    while len(written) < count:
        positions = np.arange(begin, begin + len(tokens), dtype=np.int32)
        given = {
            "tokens": tokens[None],
            "input_pos": positions,
            "mask": language_models.causal_mask(positions, models.CAPACITY, "float32"),
        }
        logits, *updated = session.run(None, given | cache)
        cache = dict(zip(cache, updated, strict=True))
        begin += len(tokens)
        tokens = np.argmax(logits[0, -1:], axis=-1).astype(np.int32)
        written.append(int(tokens[0]))
    return written


@pytest.mark.parametrize(("module", "sizes"), [("nnx", models.GEMMA), ("linen", models.QWEN)])
def test_onnxruntime_writes_what_jax_writes(module, sizes, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx_ir")
    step, params, given = arguments(module, sizes)
    path = tmp_path / "model.onnx"
    export.to_onnx(**given, path=path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for prompt in PROMPTS:
        read = list(prompt.encode())
        expected = models.greedy(step, params, sizes, read, 64, stop=None)
        assert written_by(session, read, 64) == expected


def test_several_signatures_are_no_onnx_model(tmp_path):
    step, params = models.MODULES["nnx"].decoder(models.QWEN, seed=0)
    given = models.arguments(step, params, models.QWEN)
    message = "export each of prefill_8, prefill_16, decode to a file .*export.decode_any_length"
    with pytest.raises(ValueError, match=message):
        export.to_onnx(**given, path=tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
