"""The examples of the README run."""

from tests.helpers import ROOT, run_as_program


def test_examples_of_the_readme_run(tmp_path):
    printed = run_as_program(ROOT / "README.md", tmp_path)
    assert printed.count("shape=(4, 2), dtype=float32") == 4
    assert "(2, 2) (4, 2)" in printed
