"""The results as the document shows them."""

import dataclasses
from collections.abc import Collection, Mapping, Sequence

from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.program import Case
from harnesses.evaluation.results import JAX, Evaluated, Row
from harnesses.models import SIZES


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a table.

    Attributes:
      model: the name of the model.
      shape: its symbolic dimensions, as JAX traces them.
      cells: the text of each cell.
    """

    model: str
    shape: str
    cells: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error, and the cells that it occurred in.

    Attributes:
      anchor: the name that cells link to.
      converter: the title of the converter, or of JAX.
      message: the error.
      lacks: what the runtime itself lacks, if that is the cause.
      cases: the size, the model, its shape and the version of JAX, each time.
    """

    anchor: str
    converter: str
    message: str
    lacks: str
    cases: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Tables:
    """What the document is made of: the lines by size of model, and the failures."""

    lines: Mapping[str, Sequence[Line]]
    failures: Sequence[Failure]


# The converters that the README has, which is to be short.
IN_SHORT = (
    "saved_model",
    "tflite",
    "onnx",
    "tfjs_node",
    "tfjs_chromium_webgl",
    "native_tflite",
    "jax2onnx",
)

# Those of the page on other ways from JAX to the formats: one of each format, and those ways.
TO_COMPARE = (
    "tflite",
    "onnx",
    "tfjs_node",
    *(name for name, converter in CONVERTERS.items() if converter.compared),
)


def summary(
    evaluated: Mapping[str, Evaluated],
    converters: Collection[str] = tuple(CONVERTERS),
    across: bool = False,
) -> str:
    """A table in Markdown: how many of the shapes that JAX can trace each converter takes.

    Each cell counts as it was with the newest version of JAX that ran it.

    Args:
      evaluated: the results by version of JAX.
      converters: the names of the converters that have a line.
      across: whether converters have a column each instead, in a table of few lines.
    """
    lines = [["converter", *(f"{size} models" for size in SIZES)]]
    newest = {key: row for version in evaluated.values() for key, row in version.rows.items()}
    rows = newest.values()
    for key in converters:
        converter, cells = CONVERTERS[key], []
        for size in SIZES:
            ran = [r for r in rows if (r.converter, r.case.size) == (key, size)]
            lacking = sum(bool(row.lacks) for row in ran)
            cell = f"{sum(row.ok for row in ran)} of {len(ran)}" if ran else "–"
            cells.append(f"{cell}, {lacking} NO (runtime)" if lacking else cell)
        if any(cell != "–" for cell in cells):
            name = f"{converter.name}, to compare" if converter.compared else converter.name
            lines.append([name, *cells])
    if across:
        lines = [list(column) for column in zip(*lines, strict=True)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |".replace(" --- ", "---") for line in lines)


def tables(evaluated: Mapping[str, Evaluated]) -> Tables:
    """The tables of the results of all versions of JAX."""
    rows = {
        (row.case, row.converter, version): row
        for version, e in evaluated.items()
        for row in e.rows.values()
    }
    cases = list(dict.fromkeys(case for case, _, _ in rows))
    cases.sort(key=lambda case: (case.model, len(case.symbolic)))
    anchors: dict[tuple[str, str, str], str] = {}
    where: dict[tuple[str, str, str], list[str]] = {}
    for name in (JAX, *CONVERTERS):
        for (case, converter, version), row in rows.items():
            if converter == name and not row.ok:
                key = name, row.message, row.lacks
                anchors.setdefault(key, f"{name}-{len(anchors) + 1}")
                dimensions = ", ".join(case.symbolic) or "static"
                where.setdefault(key, []).append(
                    f"{case.model} ({case.size}, {dimensions}, JAX {version})"
                )

    def linked(row: Row, answer: str) -> str:
        return f"[{answer}](#{anchors[row.converter, row.message, row.lacks]})"

    def cell(case: Case, converter: str) -> str:
        by_answer: dict[str, list[str]] = {}
        # The error of the newest version is linked, where several versions have one.
        texts = {"–": "–", "YES": "YES"}
        passed = []
        for version in evaluated:
            jax, row = rows.get((case, JAX, version)), rows.get((case, converter, version))
            if jax is not None and not jax.ok:
                answer = "NO (JAX)"
                texts[answer] = linked(jax, answer)
            elif row is None:
                answer = "–"
            elif row.ok:
                answer = "YES"
                passed.append(row)
            else:
                answer = "NO (runtime)" if row.lacks else "NO"
                texts[answer] = linked(row, answer)
            by_answer.setdefault(answer, []).append(version)
        if "–" in by_answer and len(by_answer) > 1:
            del by_answer["–"]
        lines = [
            texts[answer] if len(by_answer) == 1 else f"{texts[answer]} (JAX {', '.join(versions)})"
            for answer, versions in by_answer.items()
        ]
        return "<br>".join([*lines, *_figures(passed)])

    def shape(case: Case) -> str:
        found = (rows.get((case, JAX, version)) for version in evaluated)
        traced = next((row for row in found if row is not None and row.ok), None)
        multiples = traced.multiples if traced else dict.fromkeys(case.symbolic, 1)
        terms = [name if m == 1 else f"{m}\\*{name}" for name, m in multiples.items()]
        return ", ".join(terms) or "static"

    return Tables(
        lines={
            size: [
                Line(case.model, shape(case), [cell(case, name) for name in CONVERTERS])
                for case in cases
                if case.size == size
            ]
            for size in SIZES
        },
        failures=[
            Failure(
                anchor,
                "JAX" if name == JAX else CONVERTERS[name].name,
                message,
                lacks,
                where[name, message, lacks],
            )
            for (name, message, lacks), anchor in anchors.items()
        ],
    )


def _figures(rows: Sequence[Row]) -> list[str]:
    """The largest size of file, time and error."""
    if not rows:
        return []
    size = max(row.file_size for row in rows)
    seconds, error = (max(getattr(row, name) for row in rows) for name in ("seconds", "error"))
    return [*([_bytes(size)] if size else []), f"{seconds:.1f} s", f"{error:.0e}" if error else "0"]


def _bytes(count: float) -> str:
    """A number of bytes with two digits or more."""
    for unit in ("B", "kB", "MB"):
        if count < 999.5:
            return f"{count:.2g} {unit}" if count < 99.5 else f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.2g} GB"
