"""Uses the page of the demo in Chromium, as people do.

    make demo-test

builds the page and runs these tests, which `make test` leaves out: they need Chromium, which is no
Python package. On Debian, `apt-get install chromium` installs it.
"""

import itertools
import os
import pathlib
import re

import pytest
from playwright import sync_api

from harnesses.browser import launch
from tests.serving import served
from tools.demo.__main__ import FOLDER

# Where screenshots are written, if anywhere.
_SCREENSHOTS = os.environ.get("DEMO_SCREENSHOTS")

_MILLISECONDS = 120_000

# The runtimes, all of whose random bits are JAX's.
RUNTIMES = {"LiteRT", "ONNX Runtime", "TF.js (wasm)", "TF.js (webgl)"}

# Digits as people draw them: points x,y in percent of the pad; a slash lifts the pen.
DRAWN = {
    0: "50,12 30,30 27,60 42,87 60,85 74,60 72,30 50,12",
    1: "52,10 50,90",
    2: "27,30 35,15 55,10 72,22 70,42 45,68 25,88 78,88",
    3: "28,17 50,10 70,20 66,38 46,46 68,55 74,74 55,90 27,84",
    4: "58,10 22,62 80,62 / 62,35 60,92",
    5: "72,10 33,12 30,46 55,42 74,58 70,80 48,90 26,82",
    6: "66,10 42,32 28,62 34,85 58,90 72,72 60,55 32,66",
    7: "24,13 76,13 55,50 44,90",
    8: "62,20 45,11 33,24 42,42 64,60 66,80 48,90 32,78 38,58 62,40 66,24 56,14",
    9: "70,35 52,50 32,42 32,20 54,10 70,22 70,35 66,65 56,92",
}


def _strokes(digit):
    return [
        [tuple(int(part) / 100 for part in point.split(",")) for point in stroke.split()]
        for stroke in DRAWN[digit].split("/")
    ]


@pytest.fixture(scope="module")
def address():
    """A plain file server for the page."""
    assert (FOLDER / "index.html").exists(), "the page is not built: make demo"

    with served(FOLDER) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address):
    """A function that opens the page, ready for use; what its console says is an error."""
    said, asked, contexts = [], [], []

    def open_page(fragment="", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(_MILLISECONDS)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address + fragment)
        page.wait_for_selector("[role=tabpanel][data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not said
    assert all(url.startswith((address, "blob:", "data:")) for url in asked)


def _draw(page, strokes):
    """Draws strokes with the mouse."""
    page.click("#clear")
    box = page.locator("#pad").bounding_box()

    def place(point):
        return box["x"] + point[0] * box["width"], box["y"] + point[1] * box["height"]

    for stroke in strokes:
        page.mouse.move(*place(stroke[0]))
        page.mouse.down()
        for point in stroke[1:]:
            page.mouse.move(*place(point), steps=6)
        page.mouse.up()


def _expect_answer(page, digit):
    sync_api.expect(page.locator("#answer")).to_contain_text(
        f"It is a {digit}.", timeout=_MILLISECONDS
    )


def _shoot(page, name):
    if _SCREENSHOTS:
        page.screenshot(path=pathlib.Path(_SCREENSHOTS) / f"{name}.png", full_page=True)


def test_digits_drawn_by_mouse(opened):
    page = opened(viewport={"width": 1100, "height": 900})
    sync_api.expect(page.locator("#alert")).to_be_hidden()
    for digit in DRAWN:
        _draw(page, _strokes(digit))
        _expect_answer(page, digit)
    _shoot(page, "light")


def test_a_digit_drawn_by_touch_on_a_phone(opened):
    page = opened(
        viewport={"width": 360, "height": 740},
        has_touch=True,
        is_mobile=True,
        device_scale_factor=2,
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.locator("#pad").scroll_into_view_if_needed()
    box = page.locator("#pad").bounding_box()
    session = page.context.new_cdp_session(page)

    def touch(kind, point=None):
        x, y = (0, 0) if point is None else point
        points = [{"x": box["x"] + x * box["width"], "y": box["y"] + y * box["height"]}]
        session.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": points if point is not None else []},
        )

    for stroke in _strokes(4):
        touch("touchStart", stroke[0])
        for (x0, y0), (x1, y1) in itertools.pairwise(stroke):
            for share in (0.25, 0.5, 0.75, 1):
                touch("touchMove", (x0 + share * (x1 - x0), y0 + share * (y1 - y0)))
        touch("touchEnd")
    _expect_answer(page, 4)
    _shoot(page, "phone")


def test_a_digit_drawn_by_keyboard_in_the_dark(opened):
    page = opened(viewport={"width": 1100, "height": 900}, color_scheme="dark")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "numbers-tab"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "pad"
    # A seven: to the right, then down and to the left.
    for _ in range(7):
        page.keyboard.press("ArrowLeft")
    page.keyboard.press("Space")
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    for _ in range(7):
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    _expect_answer(page, 7)
    _shoot(page, "dark")
    page.keyboard.press("Backspace")
    sync_api.expect(page.locator("#answer")).to_contain_text("Draw a digit")


def test_known_digits_are_as_jax_computes_them(opened):
    page = opened()
    buttons = page.locator("#examples button")
    for i in range(buttons.count()):
        buttons.nth(i).click()
        sync_api.expect(page.locator("#difference")).to_contain_text("from JAX")
    differences = page.locator("#probabilities tbody").nth(2).locator("td")
    texts = [text for text in differences.all_inner_texts() if text]
    assert len(texts) == 4
    assert all(float(text) < 1e-5 for text in texts)


def test_random_numbers(opened):
    page = opened(viewport={"width": 1100, "height": 900})
    equal = page.locator("#comparison")
    sync_api.expect(equal).to_contain_text("JAX’s own numbers come out of")
    for name in RUNTIMES:
        sync_api.expect(equal).to_contain_text(name)
    counts = page.locator("#numbers tbody").nth(3).locator("td").all_inner_texts()
    assert [text for text in counts if text.endswith("/32")][-4:] == ["32/32"] * 4
    assert page.locator("#reasons li").count() == 0
    page.fill("#seed", "1234567")
    sync_api.expect(equal).to_contain_text("The page has JAX’s numbers for the seeds 0 to 99")
    page.fill("#seed", "-1")
    sync_api.expect(equal).to_contain_text("A seed is a whole number")


def _texts(page):
    """The texts that are shown, by runtime."""
    cards = page.locator("#texts article")
    return {
        cards.nth(i).get_attribute("data-runtime"): cards.nth(i).locator("pre").inner_text()
        for i in range(cards.count())
    }


def _expect_text_of_jax(page):
    expect = sync_api.expect(page.locator("#writing-status"))
    expect.to_contain_text("JAX’s own text comes out of every runtime.", timeout=_MILLISECONDS)
    texts = _texts(page)
    assert set(texts) == {"jax", "litert", "onnxruntime", "tfjs-wasm", "tfjs-webgl"}
    assert len(set(texts.values())) == 1
    assert len(texts["jax"]) == 160
    assert page.locator("#texts s:not(:empty)").count() == 0
    notes = page.locator("#texts .note").all_inner_texts()[1:]
    assert all(re.fullmatch(r"[1-9]\d* tokens per second", note) for note in notes), notes


@pytest.mark.parametrize("example", [0, 7])
def test_known_texts_are_as_jax_writes_them(opened, example):
    page = opened("#text-panel", viewport={"width": 1100, "height": 900})
    page.locator("#beginnings button").nth(example).click()
    _expect_text_of_jax(page)
    _shoot(page, f"text-{example}")


def test_a_text_by_keyboard_on_a_phone_in_the_dark(opened):
    page = opened(
        viewport={"width": 390, "height": 844},
        has_touch=True,
        is_mobile=True,
        color_scheme="dark",
    )
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "text-tab"
    page.wait_for_selector("#text-panel[data-ready]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "beginning"
    page.keyboard.press("Control+a")
    page.keyboard.type("If the object")
    page.keyboard.press("Enter")
    _expect_text_of_jax(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    _shoot(page, "text-phone-dark")


def test_texts_that_jax_has_not_written_are_compared_with_each_other(opened):
    page = opened("#text-panel", viewport={"width": 1100, "height": 900}, color_scheme="dark")
    status = sync_api.expect(page.locator("#writing-status"))
    page.fill("#beginning", "A module is")
    page.fill("#text-seed", "12")
    page.click("#write")
    status.to_have_text("The same text comes out of every runtime.", timeout=_MILLISECONDS)
    texts = _texts(page)
    assert texts.pop("jax") == ""
    assert len(set(texts.values())) == 1
    _shoot(page, "text-dark")
    page.click("#write")
    status.to_contain_text("writes …")
    page.keyboard.press("Escape")
    status.to_have_text("Stopped.")
    page.fill("#beginning", "Ein Schlüssel")
    page.click("#write")
    assert page.evaluate("document.querySelector('#beginning').matches(':invalid')")
    status.to_have_text("Stopped.")


def test_a_page_that_is_opened_as_a_file_says_what_to_do(browser):
    page = browser.new_page()
    page.goto((FOLDER / "index.html").as_uri())
    sync_api.expect(page.locator("#alert")).to_contain_text("python3 -m http.server")
    page.close()
