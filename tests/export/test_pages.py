"""The page of the guide on language models writes what JAX writes."""

import re

import pytest

from harnesses import browser
from harnesses.browser import packages
from lowering import export
from tests.export import language_models as models
from tests.helpers import ROOT
from tests.serving import served

_GUIDE = ROOT / "g3doc" / "guides" / "language_models.md"
_MILLISECONDS = 60_000

# What TF.js's bundle is made of, without WebGL, which is slow where there is no graphics card.
_TFJS = [f"tf-{name}.min.js" for name in ("core", "converter", "backend-cpu")]


def _library(address):
    """What a page reads from the network, of the packages that are installed."""
    modules = packages.directory() / "node_modules"
    if "@huggingface/tokenizers@" in address:
        return (modules / "@huggingface/tokenizers/dist/tokenizers.min.mjs").read_text()
    assert "@tensorflow/tfjs@" in address, address
    return "\n".join(packages.library(f"tfjs/{name}").read_text() for name in _TFJS)


@pytest.fixture
def address(tmp_path):
    with served(tmp_path) as found:
        yield found


def test_the_page_of_the_guide_writes_what_jax_writes(tmp_path, address):
    api = pytest.importorskip("playwright.sync_api")
    pytest.importorskip("tokenizers")
    try:
        browser.chromium()
    except FileNotFoundError as error:
        pytest.skip(str(error))
    packages.install()
    step, params = models.MODULES["nnx"].decoder(models.QWEN, seed=0)
    export.to_tfjs(
        **models.arguments(step, params, models.QWEN, prefill=(8,)),
        path=tmp_path / "model",
        verify=False,
    )
    tokenizer = models.hugging_face()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (page,) = re.findall(r"^```html\n(.*?)^```", _GUIDE.read_text(), re.DOTALL | re.MULTILINE)
    (tmp_path / "index.html").write_text(page)

    read = tokenizer.encode("<s>def ").ids
    stop = tokenizer.token_to_id("</s>")
    count = models.CAPACITY - len(read) + 1
    expected = tokenizer.decode(
        [*read, *models.greedy(step, params, models.QWEN, read, count, stop)]
    )
    with api.sync_playwright() as playwright:
        opened = browser.launch(playwright).new_page()
        opened.set_default_timeout(_MILLISECONDS)
        failures = []
        opened.on("pageerror", lambda error: failures.append(error))
        opened.route(
            lambda url: not url.startswith(address),
            lambda route: route.fulfill(
                body=_library(route.request.url),
                content_type="text/javascript",
                headers={"Access-Control-Allow-Origin": "*"},
            ),
        )
        opened.goto(address)
        opened.fill("#beginning", "def ")
        opened.click("#write:enabled")
        opened.wait_for_selector("#write:enabled")
        assert not failures
        assert opened.text_content("#text") == expected
