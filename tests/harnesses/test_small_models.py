"""Small models in the converters of this project and their runtimes."""

import threading
import time
from collections.abc import Mapping, Sequence

import pytest

from harnesses import models
from harnesses.evaluation import results
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.program import Case
from harnesses.evaluation.results import JAX, Row
from harnesses.evaluation.run import run
from harnesses.models import symbolic
from harnesses.sweep import versions
from tests import turns
from tools import regenerate_docs
from tools.evaluate_models import is_bad

# What each model has to pass, in one of its shapes. Each time sources change, half of these are run
# for a model; the other converters take turns.
ALWAYS = ("xla", "no_xla", "tflite", "tflite_flex", "onnx", "tfjs_node")
# How long the others have at least, and after which time a cell counts as hung.
SECONDS, HUNG = 30, 300


@pytest.fixture(scope="module")
def committed() -> Mapping[tuple[Case, str], Row]:
    """The rows of the document, of the version of JAX that is installed, by case and converter."""
    evaluated = results.read(regenerate_docs.MODELS).get(versions().jax)
    return evaluated.rows if evaluated else {}


def choices(name: str) -> list[Case]:
    """A model with all known shapes, with each symbolic dimension, and with all of them."""
    return [Case("small", name, c) for c in symbolic.choices(models.load(name, "small"))]


def is_converted(row: Row) -> bool:
    """Whether a converter, not JAX itself, is right."""
    return row.ok and row.converter != JAX


def check(rows: Sequence[Row], committed: Mapping[tuple[Case, str], Row]) -> None:
    """What fails has to be known: a NO in the document of the results, of JAX or of a converter."""
    assert any(map(is_converted, rows))
    known = {key for key, row in committed.items() if is_bad(row)}
    assert not [row for row in rows if is_bad(row) and (row.case, row.converter) not in known]
    traced = {case for (case, name), row in committed.items() if name == JAX and row.ok}
    assert not [row for row in rows if row.case in traced and row.converter == JAX and not row.ok]


def in_turn(name: str, converters: Sequence[str]) -> dict[Case, list[str]]:
    """Half of the converters with a case of a model, and each case with one of the converters."""
    cases = choices(name)
    if turns.ALL:
        return {case: list(converters) for case in cases}
    first, other = turns.number(name), turns.number(name, "converter")
    cells: dict[Case, list[str]] = {case: [] for case in cases}
    for i in range(max(len(cases), -(-len(converters) // 2))):
        cells[cases[(first + i) % len(cases)]].append(converters[(other + i) % len(converters)])
    return cells


def test_each_model_in_each_kind_of_converter(committed):
    chosen = [name for name in ALWAYS if not CONVERTERS[name].missing()]
    cells = {case: c for name in models.NAMES for case, c in in_turn(name, chosen).items()}
    rows = list(run(cells, workers=2, timeout=HUNG, stop=threading.Event()))
    assert {(row.case, row.converter) for row in rows} >= {
        (row.case, name)
        for row in rows
        if row.converter == JAX and row.ok
        for name in cells[row.case]
    }
    check(rows, committed)


def test_other_converters(committed):
    """The first model is another one whenever sources change."""
    first = turns.number() % len(models.NAMES)
    chosen = [
        name
        for name, converter in CONVERTERS.items()
        if name not in ALWAYS and not (converter.compared or converter.missing())
    ]
    cells = {
        case: chosen
        for name in (*models.NAMES[first:], *models.NAMES[:first])
        for case in choices(name)
    }
    stop, rows = threading.Event(), []
    started = time.monotonic()
    for row in run(cells, workers=2, timeout=HUNG, stop=stop):
        rows.append(row)
        # However slow the machine is, one converter has its say.
        if time.monotonic() - started > SECONDS and any(map(is_converted, rows)):
            stop.set()
    check(rows, committed)
