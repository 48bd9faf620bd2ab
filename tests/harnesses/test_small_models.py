"""Small models in all converters of this project and their runtimes, for two minutes."""

import threading

from harnesses import models
from harnesses.evaluation import results
from harnesses.evaluation.converters import CONVERTERS
from harnesses.evaluation.program import Case
from harnesses.evaluation.results import JAX
from harnesses.evaluation.run import run
from harnesses.models import symbolic
from harnesses.sweep import fingerprint, versions
from tools import regenerate_docs
from tools.evaluate_models import is_bad

SECONDS = 120


def test_small_models():
    """The first model is another one whenever sources change.

    What fails has to be known: a NO in the document of the results.
    """
    committed = results.read(regenerate_docs.MODELS).get(versions().jax)
    known = {key for key, row in committed.rows.items() if is_bad(row)} if committed else set()
    first = int(fingerprint(), 16) % len(models.NAMES)
    chosen = [n for n, c in CONVERTERS.items() if not (c.compared or c.missing())]
    cells = {
        Case("small", name, choice): chosen
        for name in (*models.NAMES[first:], *models.NAMES[:first])
        for choice in symbolic.choices(models.load(name, "small"))
    }
    stop = threading.Event()
    timer = threading.Timer(SECONDS, stop.set)
    timer.start()
    try:
        rows = list(run(cells, workers=2, timeout=SECONDS, stop=stop))
    finally:
        timer.cancel()
    assert any(row.ok and row.converter != JAX for row in rows)
    assert not [row for row in rows if is_bad(row) and (row.case, row.converter) not in known]
