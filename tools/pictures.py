"""Pictures of the recorded results, for the documents: SVG for light and dark screens.

Each picture answers the question that is its title. The same results give the same bytes.
`tools/regenerate_docs.py` writes them.
"""

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from harnesses.cell import Outcome
from harnesses.recorded import Recorded
from tools.families import family
from tools.history import Record

_STYLE = """
text { font: 12px sans-serif; fill: #24292f } .title { font-size: 15px; font-weight: bold }
.page { fill: #ffffff } .quiet { fill: #57606a } .grid { stroke: #d0d7de }
.all { fill: #b7e1c4 } .most { fill: #ffe08a } .none { fill: #eaeef2 }
.a { fill: #0b57b8; stroke: #0b57b8 } .b { fill: #b35900; stroke: #b35900 }
.c { fill: #1a7f4b; stroke: #1a7f4b } .d { fill: #8250df; stroke: #8250df }
.e { fill: #bf3989; stroke: #bf3989 } .f { fill: #57606a; stroke: #57606a }
.line { fill: none; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .page { fill: #0d1117 } .quiet { fill: #9198a1 } .grid { stroke: #3d444d }
.all { fill: #1f5c38 } .most { fill: #7a5c00 } .none { fill: #21262d }
.a { fill: #5ea2ff; stroke: #5ea2ff } .b { fill: #f0883e; stroke: #f0883e }
.c { fill: #3fb950; stroke: #3fb950 } .d { fill: #b392f0; stroke: #b392f0 }
.e { fill: #f778ba; stroke: #f778ba } .f { fill: #9198a1; stroke: #9198a1 }
.line { fill: none }
}
"""
_SERIES = "abcdef"
# As wide as a phone can show without too small letters. Names stand above what they name.
_WIDTH, _MARGIN = 460, 16
# The height of a line of a legend.
_LINE = 15
# What people call the kinds of records.
_KINDS = {"core": "TensorFlow", "consumers": "runtimes"}


class Picture:
    """An SVG that is drawn from the top left corner, in pixels."""

    def __init__(self, width: float, height: float, title: str):
        """Makes a picture with a title above it."""
        self.width = width
        self._root = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", role="img")
        self._root.set("viewBox", f"0 0 {width:g} {height:g}")
        self._root.set("width", f"{width:g}")
        ET.SubElement(self._root, "title").text = title
        ET.SubElement(self._root, "style").text = _STYLE
        self.rectangle(0, 0, width, height, "page")
        self.text(16, 26, title, "title")

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        """Writes a text whose start, middle or end is at `x` and whose baseline is at `y`."""
        self._add("text", style, x=x, y=y, text_anchor=anchor).text = text

    def rectangle(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """Fills a rectangle."""
        self._add("rect", style, x=x, y=y, width=width, height=height)

    def line(self, points: Iterable[tuple[float, float]], style: str) -> None:
        """Draws a line through points."""
        self._add("polyline", style, points=" ".join(f"{x:.4g},{y:.4g}" for x, y in points))

    def dot(self, x: float, y: float, style: str) -> None:
        """Draws a point."""
        self._add("circle", style, cx=x, cy=y, r=3.5)

    def render(self) -> str:
        """The picture as XML."""
        ET.indent(self._root, " ")
        return ET.tostring(self._root, encoding="unicode") + "\n"

    def _add(self, tag: str, style: str, **attributes: float | str) -> ET.Element:
        element = ET.SubElement(self._root, tag)
        for name, value in attributes.items():
            text = value if isinstance(value, str) else f"{value:.5g}"
            element.set(name.replace("_", "-"), text)
        if style:
            element.set("class", style)
        return element


class Column(NamedTuple):
    """A target whose coverage is shown.

    Attributes:
      name: what it is called.
      recorded: the recorded results of it.
      target: the name of the target.
    """

    name: str
    recorded: Sequence[Recorded]
    target: str


_ROW, _LABEL, _CELL = 17, 176, 47


def coverage(columns: Sequence[Column]) -> str:
    """The share of cells that are equal to JAX, by family of primitives and target."""
    counts: dict[str, list[list[int]]] = {}
    for number, column in enumerate(columns):
        for recorded in column.recorded:
            for primitive in recorded.cells:
                of_family = counts.setdefault(family(primitive), [[0, 0] for _ in columns])
                place = f"{column.target} "
                of_family[number][0] += recorded.count(primitive, Outcome.EQUAL, place)
                of_family[number][1] += recorded.count(primitive, None, place)
    bottom = 66 + _ROW * len(counts)
    title = "How many test cells equal JAX, by primitives?"
    picture = Picture(max(_LABEL + _CELL * len(columns) + 2, _WIDTH), bottom + 26, title)
    under = "The rest are expected failures, such as callbacks in compiled code."
    picture.text(_MARGIN, bottom + 12, under, "quiet")
    for number, column in enumerate(columns):
        middle = _LABEL + _CELL * (number + 0.5)
        picture.text(middle, 52, column.name, "quiet", "middle")
    for row, name in enumerate(sorted(counts)):
        top = 60 + _ROW * row
        picture.text(_LABEL - 8, top + 12.5, name, anchor="end")
        for number, (equal, ran) in enumerate(counts[name]):
            x = _LABEL + _CELL * number
            picture.rectangle(x, top, _CELL - 2, _ROW - 2, _shade(equal, ran))
            middle = x + _CELL / 2 - 1
            picture.text(middle, top + 12, _percent(equal, ran), anchor="middle")
    return picture.render()


def _shade(equal: int, ran: int) -> str:
    if not ran:
        return "none"
    return "all" if equal == ran else "most"


def _percent(equal: int, ran: int) -> str:
    """A share, which is 100% only if nothing is missing."""
    if not ran:
        return "–"
    return "100%" if equal == ran else f"{math.floor(1000 * equal / ran) / 10:.1f}%"


def slowest(times: Mapping[str, Mapping[str, float]], count: int = 15) -> str:
    """The kinds of cells that take longest on average.

    Args:
      times: how many seconds the cells of a primitive take, by mode; as `g3doc/times.json`.
      count: how many to show.
    """
    named = [
        (f"{primitive}, {mode}", seconds)
        for primitive, by_mode in times.items()
        for mode, seconds in by_mode.items()
        if primitive and mode
    ]
    named.sort(key=lambda bar: (-bar[1], bar[0]))
    title = "Which cells take longest? Means by mode"
    return _bars(title, named[:count], "{:.3g} s")


def _bars(title: str, bars: Sequence[tuple[str, float]], form: str) -> str:
    """Horizontal bars, each with its name and number."""
    length, step = _WIDTH - 2 * _MARGIN, 34
    largest = max((value for _, value in bars), default=1.0)
    picture = Picture(_WIDTH, 46 + step * len(bars), title)
    for row, (name, value) in enumerate(bars):
        y = 52 + step * row
        picture.text(_MARGIN, y, name)
        picture.text(_MARGIN + length, y, form.format(value), "quiet", "end")
        picture.rectangle(_MARGIN, y + 5, max(length * value / largest, 1), 10, "a")
    return picture.render()


def ratios(title: str, rows: Sequence[tuple[str, float, float, float]]) -> str:
    """Ratios of times, of which 1 is as fast, each with its spread.

    Args:
      title: the question that they answer.
      rows: names, medians, and the ends of the middle half.
    """
    length, step = _WIDTH - 2 * _MARGIN, 34
    largest = max([1.2, *(high for *_, high in rows)]) * 1.05
    picture = Picture(_WIDTH, 84 + step * len(rows), title)
    under = "Left of the line it is faster. A bar is the middle half of turns."
    picture.text(_MARGIN, 46, under, "quiet")

    def place(value: float) -> float:
        return _MARGIN + length * value / largest

    picture.text(place(1), 78 + step * len(rows), "1", "quiet", "middle")
    for row, (name, median, low, high) in enumerate(rows):
        y = 82 + step * row
        picture.text(_MARGIN, y - 10, name)
        picture.text(_MARGIN + length, y - 10, f"{median:.2f}", "quiet", "end")
        picture.line([(_MARGIN, y), (_MARGIN + length, y)], "grid")
        picture.line([(place(1), y - 6), (place(1), y + 6)], "a line")
        picture.rectangle(place(low), y - 3, max(place(high) - place(low), 1), 6, "b")
        picture.dot(place(median), y, "b")
    return picture.render()


class Panel(NamedTuple):
    """A plot beside others.

    Attributes:
      title: what it shows.
      unit: of the numbers on the vertical axis.
      curves: the points of each curve by name.
    """

    title: str
    unit: str
    curves: Mapping[str, Sequence[tuple[float, float]]]


def panels(title: str, plots: Sequence[Panel]) -> str:
    """Curves over a number, one plot below the other; all axes begin at zero."""
    plots = [plot for plot in plots if plot.curves]
    names = list(dict.fromkeys(name for plot in plots for name in plot.curves))
    length, height, step = 370, 150, 220
    lines = _LINE * (len(_rows(names)) - 1)
    picture = Picture(_WIDTH, 76 + lines + step * len(plots), title)
    _legend(picture, names, 50)
    for number, plot in enumerate(plots):
        left, top = 64.0, 98.0 + lines + step * number
        points = [point for curve in plot.curves.values() for point in curve]
        right, highest = (max(axis) for axis in zip(*points, strict=True))
        picture.text(left, top - 10, plot.title)
        for share in (0.0, 0.5, 1.0):
            y = top + height * (1 - share)
            picture.line([(left, y), (left + length, y)], "grid")
            picture.text(left - 6, y + 4, f"{highest * share:.3g}{plot.unit}", "quiet", "end")
            at = f"{right * share:,.0f}"
            picture.text(left + length * share, top + height + 18, at, "quiet", "middle")
        for name, curve in plot.curves.items():
            style = _SERIES[names.index(name)]
            drawn = [
                (left + length * x / right, top + height * (1 - y / highest)) for x, y in curve
            ]
            picture.line(drawn, f"{style} line")
            for x, y in drawn:
                picture.dot(x, y, style)
    return picture.render()


def accuracy(errors: Mapping[str, Mapping[str, Mapping[str, float]]], dtype: str) -> str:
    """The worst errors of functions in units of the last place, beside JAX's.

    Args:
      errors: by function and dtype the numbers "ours" and "jax"; as in `g3doc/accuracy.json`.
      dtype: the dtype that is drawn.
    """
    label, length, step = 128, 272, 34
    title = f"How exact is {dtype}? The worst error, in ULPs"
    picture = Picture(_WIDTH, 106 + step * len(errors), title)
    numbers = [found[dtype][kind] for found in errors.values() for kind in ("ours", "jax")]
    least, powers = 0.3, math.ceil(math.log10(max(10.0, *numbers)))
    decades = powers - math.log10(least)
    bottom = 66 + step * len(errors)
    for power in range(powers + 1):
        x = label + length * (power - math.log10(least)) / decades
        picture.line([(x, 60), (x, bottom)], "grid")
        picture.text(x, bottom + 16, f"{10**power:,}", "quiet", "middle")
    _legend(picture, ["lowering", "JAX"], 50)
    for row, (name, found) in enumerate(sorted(errors.items())):
        y = 68 + step * row
        picture.text(label - 8, y + 17, name, anchor="end")
        for number, kind in enumerate(("ours", "jax")):
            ulps = found[dtype][kind]
            width = max(length * (math.log10(max(ulps, least)) - math.log10(least)) / decades, 1)
            picture.rectangle(label, y + 14 * number, width, 12, _SERIES[number])
            picture.text(label + width + 6, y + 14 * number + 10.5, f"{ulps:.3g}", "quiet")
    return picture.render()


def over_time(records: Sequence[Record]) -> str:
    """How many cells were run, and how many limitations they needed, by sweep."""
    series: dict[str, list[Record]] = {}
    for record in records:
        series.setdefault(f"{_KINDS[record.kind]}, JAX {record.jax}", []).append(record)
    title = "How many cells are compared, with what limitations?"
    picture = Picture(_WIDTH, 494, title)
    _legend(picture, list(series), 44)
    moments = sorted({_moment(record) for record in records})
    for name, top, height in (("cells", 100, 200), ("limitations", 350, 100)):
        values = [getattr(record, name) for record in records]
        largest = _round_up(max(values, default=1))
        for share in (0.0, 0.5, 1.0):
            y = top + height * (1 - share)
            picture.line([(64, y), (_WIDTH - _MARGIN, y)], "grid")
            picture.text(58, y + 4, f"{largest * share:,.0f}", "quiet", "end")
        picture.text(64, top - 8, name)
        for number, of_series in enumerate(series.values()):
            style = _SERIES[number]
            points = [
                (_x(_moment(r), moments), top + height * (1 - getattr(r, name) / largest))
                for r in of_series
            ]
            if len(points) > 1:
                picture.line(points, f"{style} line")
            for x, y in points:
                picture.dot(x, y, style)
    days = {moment.date(): moment for moment in reversed(moments)}
    after = math.inf
    for day, moment in days.items():
        x = _x(moment, moments)
        if after - x > 80:
            picture.text(x, 472, f"{day}", "quiet", "middle")
            after = x
    return picture.render()


def _legend(picture: Picture, names: Sequence[str], y: float) -> None:
    """Says which colour each series has; no two have the same."""
    for row in _rows(names):
        x = float(_MARGIN)
        for name in row:
            picture.rectangle(x, y - 9, 10, 10, _SERIES[names.index(name)])
            picture.text(x + 16, y, name)
            x += _length(name)
        y += _LINE


def _rows(names: Sequence[str]) -> list[list[str]]:
    """The names in a legend, by the lines that they take."""
    rows: list[list[str]] = [[]]
    for name in names:
        if _MARGIN + sum(map(_length, rows[-1])) + _length(name) > _WIDTH and rows[-1]:
            rows.append([])
        rows[-1].append(name)
    return rows


def _length(name: str) -> float:
    """How wide a name and its colour are in a legend."""
    return 34 + 6.6 * len(name)


def _moment(record: Record) -> datetime:
    return datetime.fromisoformat(record.when)


def _x(moment: datetime, moments: Sequence[datetime]) -> float:
    whole = (moments[-1] - moments[0]).total_seconds()
    return 98 + 308 * ((moment - moments[0]).total_seconds() / whole if whole else 0.5)


def _round_up(value: float) -> float:
    """The next larger number with one digit other than zero; an even one, so that half is round."""
    power = 10 ** math.floor(math.log10(max(value, 1)))
    return max(2 * math.ceil(value / power / 2) * power, 2)
