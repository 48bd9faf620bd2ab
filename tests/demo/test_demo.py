"""The parts of the demo, without a browser; `in_browser.py` uses its page in one."""

import json
import subprocess

import hypothesis
import jax
import numpy as np
import pytest
from hypothesis import strategies as st

from harnesses import browser
from harnesses.browser import packages
from lowering.export.tfjs import node
from tools.demo import building, digits, language_training, random_numbers, training, writing

SIDE, DIGIT = digits.DRAWING, digits.DIGIT


@pytest.fixture(scope="module")
def tested() -> training.Digits:
    return training.load()[1]


def _rectangle(top, left, height, width):
    drawing = np.zeros((SIDE, SIDE), np.float32)
    drawing[top : top + height, left : left + width] = 1
    return drawing


def test_the_whole_digit_is_seen(tested):
    """Digits of scikit-learn are of full height, so that they are only moved to the middle."""
    for image in tested.images:
        seen = np.asarray(digits.as_digit(training.as_drawing(image)))
        np.testing.assert_allclose(seen.sum(1), image.sum(1), rtol=0.2, atol=4)


@hypothesis.given(st.integers(0, 23), st.integers(0, 23), st.integers(12, 40), st.integers(12, 40))
@hypothesis.settings(deadline=None, max_examples=50)
def test_drawings_are_centred_and_scaled(top, left, height, width):
    seen = np.asarray(digits.as_digit(_rectangle(top, left, height, width)))
    side = max(height, width)
    np.testing.assert_allclose(seen.max(), 16, rtol=1e-4)
    np.testing.assert_allclose(seen.sum() / 16, height * width / side**2 * DIGIT**2, rtol=1e-3)
    np.testing.assert_allclose(seen, seen[::-1, ::-1], atol=1e-3)


@pytest.mark.parametrize("ink", [0, 0.1, 1])
def test_drawings_without_a_digit_have_probabilities(ink):
    results = digits.predict(digits.init(0), np.full((SIDE, SIDE), ink, np.float32))
    np.testing.assert_allclose(np.sum(results["probabilities"]), 1, rtol=1e-5)
    assert np.isfinite(results["seen"]).all()


def test_a_dot_is_not_enlarged_to_a_digit():
    seen = np.asarray(digits.as_digit(_rectangle(30, 30, 3, 3)))
    assert np.count_nonzero(seen) <= 16


def test_training_learns_digits(tested):
    assert training.accuracy(training.train(steps=100), *tested) > 0.7


def test_training_learns_texts():
    before = language_training.perplexity(writing.init(0))
    assert language_training.perplexity(language_training.train(steps=4)) < before


def test_texts_are_written_step_by_step():
    """The most probable tokens are those of all characters at once; a seed gives one text."""
    params = writing.init(0)
    text = writing.text(params, "The value", 0, 0.0)
    assert len(text) == writing.CAPACITY
    assert text.startswith("The value")
    tokens = np.frombuffer(text.encode("ascii"), np.uint8).astype(np.int32)
    most_probable = np.argmax(writing.logits(params, tokens), axis=-1)
    begin = len("The value") - 1
    np.testing.assert_array_equal(most_probable[begin:-1], tokens[begin + 1 :])
    first, second, other = (writing.text(params, "The", seed, 1.0) for seed in (1, 1, 2))
    assert first == second != other


def test_the_page_draws_what_the_model_was_trained_on(tested):
    """The page's own code makes drawings of digits, and of strokes."""
    image = tested.images[0]
    strokes = [[[0.25, 0.25], [0.75, 0.25], [0.5, 0.75]], [[0.1, 0.9]]]
    script = f"""
        import {{fromDigit, fromStrokes}} from '{building.SOURCES / "ink.js"}';
        const drawings = [fromDigit({image.ravel().tolist()}), fromStrokes({strokes})];
        console.log(JSON.stringify(drawings.map((drawing) => Array.from(drawing))));
    """
    command = [*node.program("node"), "--input-type=module", "--eval", script]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    digit, drawn = (np.float32(x).reshape(SIDE, SIDE) for x in json.loads(output))
    np.testing.assert_array_equal(digit, training.as_drawing(image))
    assert drawn[16, 32] == drawn[16, 20] == drawn[57, 6] == 1
    assert drawn[40, 10] == drawn[50, 60] == 0
    assert drawn.min() == 0


def test_programs_are_exported_for_each_runtime(tmp_path):
    building._export(tmp_path, random_numbers.draw, {"seed": np.int32(0)})
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"tfjs", "model.tflite", "model.onnx"}


def test_the_page_has_the_random_numbers_of_jax():
    numbers = building._random()[42]
    key = jax.random.key(42)
    bits = [high * 65536 + low for high, low in zip(numbers["high"], numbers["low"])]
    assert bits == jax.random.bits(key, (random_numbers.COUNT,)).tolist()
    assert numbers["uniform"] == jax.random.uniform(key, (random_numbers.COUNT,)).tolist()


def test_without_chromium_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    with pytest.raises(FileNotFoundError, match="apt-get install chromium"):
        browser.chromium()


def test_the_lock_file_names_no_host():
    lock = (packages.PAGE / "package-lock.json").read_text()
    assert "http" not in lock
    wanted = json.loads((packages.PAGE / "package.json").read_text())["dependencies"]
    assert json.loads(lock)["packages"][""]["dependencies"] == wanted
