"""Examples of guides, recipes and the first page run; what all pages link and install is right.

The examples of one page are one program.
"""

import re

import pytest

from tests.helpers import ROOT, code_blocks, run_as_program

G3DOC = ROOT / "g3doc"
EXAMPLES = [
    page
    for page in (
        G3DOC / "index.md",
        *sorted((G3DOC / "guides").glob("*.md")),
        *sorted((G3DOC / "recipes").glob("*.md")),
    )
    if code_blocks(page)
]
PAGES = sorted([*ROOT.glob("*.md"), *G3DOC.rglob("*.md")])

# Packages of extras whose examples are skipped where they are missing.
_PACKAGES = {
    "language_models": ("litert_lm", "litert_lm_builder", "ai_edge_quantizer", "tokenizers"),
    "transformers": ("transformers",),
}


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples_of_a_page_run(page, tmp_path):
    for package in _PACKAGES.get(page.stem, ()):
        pytest.importorskip(package)
    run_as_program(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_exist(page):
    text = re.sub(r"^( *)```.*?^ *```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\(([\w./-]+)[)#]", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_installs_has_tensorflow(page):
    """It is no dependency of the package, as it is published under two names."""
    for extras in re.findall(r'pip install "\.\[([\w,]+)\]"', page.read_text()):
        assert {"cpu", "tensorflow"} & set(extras.split(",")), extras
