"""The examples of the guides run; those of one guide are one program."""

import re

import pytest

from tests.helpers import ROOT, code_blocks, run_as_program

GUIDES = sorted((ROOT / "g3doc" / "guides").glob("*.md"))

# Packages of extras whose examples are skipped where they are missing.
_PACKAGES = {
    "language_models": ("litert_lm", "litert_lm_builder", "ai_edge_quantizer", "tokenizers")
}


@pytest.mark.parametrize("guide", [g for g in GUIDES if code_blocks(g)], ids=lambda p: p.stem)
def test_examples_of_a_guide_run(guide, tmp_path):
    for package in _PACKAGES.get(guide.stem, ()):
        pytest.importorskip(package)
    run_as_program(guide, tmp_path)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_links_of_a_guide_exist(guide):
    for link in re.findall(r"\]\(([\w./]+)\)", guide.read_text()):
        assert (guide.parent / link).exists(), link
