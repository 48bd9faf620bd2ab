"""Pictures show what the recorded results say, and nothing in them overlaps."""

import re
from xml.etree import ElementTree

import pytest

from harnesses import recorded
from tools import history, performance, pictures, regenerate_docs
from tools.history import Record

NAMES = ("accuracy", "coverage", "over_time", "slowest")
OF_BENCHES = {path.stem: path for path in performance.drawn(performance.recorded())}
# Those that a page shows at their full size, in pixels, on a phone or nearly so.
WIDTH = 480
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn():
    swept = recorded.read(regenerate_docs.RECORDED)
    return regenerate_docs.draw(swept, recorded.read(regenerate_docs.OF_CONSUMERS))


@pytest.mark.parametrize("name", [*NAMES, *OF_BENCHES])
def test_texts_stay_inside_and_apart(drawn, name):
    is_of_benches = name in OF_BENCHES
    text = OF_BENCHES[name].read_text() if is_of_benches else drawn[f"pictures/{name}.svg"]
    root = ElementTree.fromstring(text)
    width, height = (float(x) for x in root.get("viewBox").split()[2:])
    assert width <= WIDTH
    boxes = []
    for element in root.iter(f"{SVG}text"):
        size = 8.5 if element.get("class") == "title" else 6.2
        long = size * len(element.text)
        shift = {"start": 0, "middle": long / 2, "end": long}[element.get("text-anchor")]
        left, bottom = float(element.get("x")) - shift, float(element.get("y"))
        assert left >= 0 and left + long <= width and 12 <= bottom <= height, element.text
        boxes.append((left, left + long, bottom, element.text))
    for i, (left, right, bottom, text) in enumerate(boxes):
        for other_left, other_right, other_bottom, other in boxes[:i]:
            apart = left >= other_right or other_left >= right or abs(bottom - other_bottom) >= 12
            assert apart, (text, other)


def test_pictures_are_small_and_always_the_same(drawn):
    swept = recorded.read(regenerate_docs.RECORDED)
    again = regenerate_docs.draw(swept, recorded.read(regenerate_docs.OF_CONSUMERS))
    assert again == drawn
    assert {f"pictures/{name}.svg" for name in NAMES} <= set(drawn)
    assert all(len(text) < 100_000 for text in drawn.values())
    # Each style for light screens has one for dark screens.
    light, dark = next(iter(drawn.values())).split("@media")
    styles, of_dark = (set(re.findall(r"(\.\w+) \{", part)) for part in (light, dark))
    assert styles - {".title"} <= of_dark


@pytest.mark.parametrize(
    ("equal", "ran", "text", "style"),
    [
        (3, 3, "100%", "all"),
        (9999, 10000, "99.9%", "most"),
        (1, 2, "50.0%", "most"),
        (0, 0, "–", "none"),
    ],
)
def test_all_is_all(equal, ran, text, style):
    assert (pictures._percent(equal, ran), pictures._shade(equal, ran)) == (text, style)


def test_a_sweep_has_one_record():
    one = Record("2026-01-02T03:04", "core", "0.10.2", 10, 9, 1)
    again = Record("2026-01-02T03:04", "core", "0.10.2", 10, 10, 0)
    older = Record("2026-01-01T00:00", "consumers", "0.10.2", 5, 5, 0)
    assert history.added(history.added([one], again), older) == [older, again]


def test_one_moment_is_a_picture_too():
    assert "circle" in pictures.over_time([Record("2026-01-02T03:04", "core", "1", 0, 0, 0)])


def test_the_axis_of_errors_has_all_of_them():
    errors = {"sin": {"float32": {"ours": 2.5, "jax": 1234.0}}}
    root = ElementTree.fromstring(pictures.accuracy(errors, "float32"))
    texts = [element.text for element in root.iter(f"{SVG}text")]
    assert {"sin", "2.5", "1.23e+03", "10,000"} <= set(texts) and "100,000" not in texts
