"""Small models in the converters of this project and their runtimes."""

import threading
from collections.abc import Mapping, Sequence

import pytest

from harnesses import models
from harnesses.evaluation import results
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.program import Case
from harnesses.evaluation.results import JAX, Row
from harnesses.evaluation.run import run
from harnesses.models import symbolic
from harnesses.sweep import fingerprint, versions
from tools import regenerate_docs
from tools.evaluate_models import is_bad

# What each model has to pass whenever sources change; the others take turns.
ALWAYS = ("xla", "no_xla", "tflite", "tflite_flex", "onnx", "tfjs_node")
# How long the others have, and after which time a cell counts as hung.
SECONDS, HUNG = 90, 300


@pytest.fixture(scope="module")
def committed() -> Mapping[tuple[Case, str], Row]:
    """The rows of the document, of the version of JAX that is installed, by case and converter."""
    evaluated = results.read(regenerate_docs.MODELS).get(versions().jax)
    return evaluated.rows if evaluated else {}


def choices(name: str) -> list[Case]:
    """A model with all known shapes, with each symbolic dimension, and with all of them."""
    return [Case("small", name, c) for c in symbolic.choices(models.load(name, "small"))]


def check(rows: Sequence[Row], committed: Mapping[tuple[Case, str], Row]) -> None:
    """What fails has to be known: a NO in the document of the results."""
    assert any(row.ok and row.converter != JAX for row in rows)
    known = {key for key, row in committed.items() if is_bad(row)}
    assert not [row for row in rows if is_bad(row) and (row.case, row.converter) not in known]


def test_each_model_in_each_kind_of_converter(committed):
    """Each model has as many symbolic dimensions as JAX can trace."""

    def is_traced(case: Case) -> bool:
        return not case.symbolic or ((case, JAX) in committed and committed[case, JAX].ok)

    chosen = [name for name in ALWAYS if not CONVERTERS[name].missing()]
    cells = {[c for c in choices(name) if is_traced(c)][-1]: chosen for name in models.NAMES}
    rows = list(run(cells, workers=2, timeout=HUNG, stop=threading.Event()))
    assert {row.case for row in rows if row.converter == JAX and row.ok} == set(cells)
    check(rows, committed)


def test_other_shapes_and_converters(committed):
    """The first model is another one whenever sources change."""
    first = int(fingerprint(), 16) % len(models.NAMES)
    chosen = [n for n, c in CONVERTERS.items() if not (c.compared or c.missing())]
    cells = {
        case: chosen
        for name in (*models.NAMES[first:], *models.NAMES[:first])
        for case in choices(name)
    }
    stop = threading.Event()
    timer = threading.Timer(SECONDS, stop.set)
    timer.start()
    try:
        rows = list(run(cells, workers=2, timeout=HUNG, stop=stop))
    finally:
        timer.cancel()
    check(rows, committed)
