"""The evaluation of models, on one that is tiny."""

import dataclasses
import shutil

import pytest

from harnesses.evaluation import converters, results
from harnesses.evaluation.results import JAX, Journal, Row
from harnesses.selection import matches
from harnesses.sweep import fingerprint, versions
from tools import evaluate_models, regenerate_docs


@pytest.fixture
def g3doc(tmp_path, monkeypatch):
    """A directory of templates without results."""
    shutil.copytree(regenerate_docs.G3DOC / "templates", tmp_path / "templates")
    monkeypatch.setattr(regenerate_docs, "G3DOC", tmp_path)
    monkeypatch.setattr(regenerate_docs, "MODELS", tmp_path / "models.json")
    shutil.copy(regenerate_docs.README, tmp_path / "README.md")
    monkeypatch.setattr(regenerate_docs, "README", tmp_path / "README.md")
    return tmp_path


def evaluate(g3doc, *argv):
    journal = str(g3doc / "journal.jsonl")
    return evaluate_models.main(["--journal", journal, "--size", "small", *argv])


# Those of this project are run by `tests/harnesses/test_small_models.py`, too.
SOME = ("xla", "tflite*", "native_tflite", "hlo*", "jax2onnx")


def test_converters(g3doc, capsys):
    """Those of this project work; those that it is compared with need not."""
    assert evaluate(g3doc, "--model", "vae", "--converter", *SOME) == 0, capsys.readouterr().out
    ((version, evaluated),) = results.read(g3doc / "models.json").items()
    assert version == versions().jax
    runnable = [
        name for name, c in converters.CONVERTERS.items() if matches(name, SOME) and not c.missing()
    ]
    assert {name for _, name in evaluated.rows} == {JAX, *runnable}
    assert not [row for row in evaluated.rows.values() if evaluate_models.is_bad(row)]
    assert evaluated.rows.keys() >= {
        (evaluate_models.Case("small", "vae", dims), name)
        for dims in ((), ("batch",))
        for name in runnable
    }
    document = (g3doc / "convert_models_results.md").read_text()
    assert "| vae | batch | YES<br>" in document
    assert "| xla | 2 of 2 | – |" in document
    assert "| TF Lite | 2 of 2 | – |" in (g3doc / "comparison.md").read_text()
    short = [
        line.strip("| ").split(" | ") for line in (g3doc / "README.md").read_text().split("\n")
    ]
    names, small, realistic = (
        next(row for row in short if row[0] == title)
        for title in ("converter", "small models", "realistic models")
    )
    place = names.index("TF Lite")
    assert (small[place], realistic[place]) == ("2&nbsp;of&nbsp;2", "–") and "xla" not in names
    assert not (g3doc / "journal.jsonl").exists()


def test_an_interrupted_run_is_continued(g3doc, capsys):
    """What the journal has is not run again; what a model cannot be traced with is not run at all.

    The results of the run before stay.
    """
    journal = Journal(g3doc / "journal.jsonl", versions(), fingerprint(), fresh=False)
    case = evaluate_models.Case("small", "cnn", ())
    of_jax = Row(case, JAX, ok=True)
    made_up = Row(case, "no_xla", ok=False, message="made up")
    untraced = Row(dataclasses.replace(case, symbolic=("batch",)), JAX, ok=False, message="no")
    for row in (of_jax, made_up, untraced):
        journal.add(row)
    assert evaluate(g3doc, "--model", "cnn", "--converter", "no_xla") == 1
    output = capsys.readouterr().out
    assert "cnn (small, static), no_xla: made up" in output
    (evaluated,) = results.read(g3doc / "models.json").values()
    assert evaluated.rows[case, "no_xla"] == made_up
    assert (untraced.case, "no_xla") not in evaluated.rows
    assert len({case for case, name in evaluated.rows if name == JAX}) == 4


def test_filters_that_select_nothing(g3doc):
    assert evaluate(g3doc, "--model", "alexnet") == 2
    assert evaluate(g3doc, "--converter", "quantum") == 2
