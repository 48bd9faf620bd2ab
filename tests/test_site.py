"""The site has all that is public, and its pages lead where they say."""

import html
import inspect
import os
import re
import subprocess
import sys
import types
import typing
import urllib.parse

import pytest

import lowering
from lowering import export, jax2tf, ops
from tests.helpers import ROOT
from tools import site_pages

G3DOC = ROOT / "g3doc"


def documented(page):
    """The names that a page of the reference has; `convert` is in a module of its name."""
    names = re.findall(r"^::: (\S+)", (G3DOC / "api" / page).read_text(), re.MULTILINE)
    return {name.replace("convert.convert", "convert") for name in names}


@pytest.mark.parametrize(("page", "module"), [("lowering.md", lowering), ("export.md", export)])
def test_each_public_name_is_in_the_reference(page, module):
    modules = {"export", "jax2tf"}
    public = {f"{module.__name__}.{name}" for name in module.__all__ if name not in modules}
    assert public <= documented(page)


def test_types_of_what_exporters_return_are_in_the_reference():
    """Those of results and attributes, and of what these have in turn."""
    pending = [getattr(export, name) for name in export.__all__]
    places = {name.rpartition(".")[2] for name in documented("export.md")}
    seen = []
    while pending:
        public = pending.pop()
        if public not in seen:
            seen.append(public)
            pending += classes_of(public)
    assert {x.__name__ for x in seen} <= places


def classes_of(public):
    """The classes of `lowering` that a function returns, or that are parts of a class."""
    pending = []
    functions = [public]
    if isinstance(public, type):
        pending += typing.get_type_hints(public).values()
        pending += typing.get_type_hints(public.__init__).values()
        parts = [x for name, x in vars(public).items() if not name.startswith("_")]
        functions = [getattr(x, "fget", getattr(x, "func", x)) for x in parts]
    for function in filter(inspect.isfunction, functions):
        pending.append(typing.get_type_hints(function).get("return"))
    while pending:
        hint = pending.pop()
        pending += [x for x in typing.get_args(hint) if x is not ...]
        if isinstance(hint, type) and hint.__module__.startswith("lowering."):
            yield hint


@pytest.mark.parametrize(("page", "module"), [("jax2tf.md", jax2tf), ("ops.md", ops)])
def test_a_module_with_all_its_names_is_in_the_reference(page, module):
    assert documented(page) == {module.__name__}
    assert all(getattr(module, name).__doc__ for name in module.__all__)


def test_the_readme_fits_on_two_screens_and_a_half():
    lines = (ROOT / "README.md").read_text().replace("&nbsp;", " ").splitlines()
    assert len(lines) <= 85 and max(map(len, lines)) <= 140


def test_a_broken_link_is_an_error(tmp_path):
    """A page that links to nothing, beside the settings of the site."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[nothing](nothing.md)\n")
    settings = (ROOT / "mkdocs.yml").read_text()
    validation = settings.partition("validation:")[2].partition("nav:\n  -")[0]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: a\nvalidation:{validation}")
    # With the flags of `make site`: with --quiet, for one, MkDocs would not count its warnings.
    (flags,) = re.findall(r"/mkdocs (build .*) \$\(ARGS\)", (ROOT / "Makefile").read_text())
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", *flags.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode != 0 and "nothing.md" in ended.stderr


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make site` builds it."""
    for package in ("mkdocs", "material", "mkdocstrings_handlers.python", "mkdocs_jupyter"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    hosted = ("SITE_URL", "REPOSITORY_URL")
    env = {name: value for name, value in os.environ.items() if name not in hosted}
    ended = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return folder


def test_links_of_all_pages_of_the_site_lead_somewhere(site):
    """MkDocs checks those of Markdown alone, not those of notebooks and templates."""
    pages = {path: html.unescape(path.read_text("utf-8")) for path in site.rglob("*.html")}
    anchors = {p: set(re.findall(r'\b(?:id|name)="([^"]+)"', text)) for p, text in pages.items()}
    broken = []
    for page, text in pages.items():
        for link in set(re.findall(r'<[^>]*\s(?:href|src)="([^"]*)"', text)):
            if re.match(r"[a-z]+:|//", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / urllib.parse.unquote(name)).resolve() if name else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and anchor not in anchors.get(target, {anchor})):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_links_of_notebooks_lead_to_pages(site):
    text = (site / "notebooks" / "debugging.html").read_text("utf-8")
    assert '<a href="../guides/natural_numerics.html">Exact' in text


def linked_by_a_notebook(target, caplog, repo_url=None):
    """What becomes of a link, and how many warnings there are, which --strict makes errors of."""
    structure = pytest.importorskip("mkdocs.structure.files")
    defaults = {"dest_dir": "", "use_directory_urls": False}
    names = ("notebooks/a.ipynb", "changelog.md", "guides/onnx.md")
    files = structure.Files([structure.File(name, "", **defaults) for name in names])
    files.get_file_from_path(names[0]).dest_uri = "notebooks/a.html"
    page = types.SimpleNamespace(file=files.get_file_from_path(names[0]))
    config = types.SimpleNamespace(repo_url=repo_url)
    text = f'<a href="{target}">b</a>'
    return site_pages.on_page_content(text, page, config, files=files), len(caplog.records)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("../guides/onnx.md", "../guides/onnx.html"),
        ("../guides/onnx.md#gpus", "../guides/onnx.html#gpus"),
        ("../../CHANGELOG.md", "../changelog.html"),
        ("../../setup.py", "https://example.org/blob/main/setup.py"),
        ("https://example.org", "https://example.org"),
        ("#here", "#here"),
    ],
)
def test_a_link_of_a_notebook(target, expected, caplog):
    found = linked_by_a_notebook(target, caplog, "https://example.org/")
    assert found == (f'<a href="{expected}">b</a>', 0)


def test_a_link_of_a_notebook_to_sources_that_are_not_hosted_is_text(caplog):
    assert linked_by_a_notebook("../../setup.py", caplog) == ("b", 0)


def test_a_broken_link_of_a_notebook_is_a_warning(caplog):
    assert linked_by_a_notebook("nothing.md", caplog)[1] == 1
    assert caplog.records[0].name.startswith("mkdocs.")


def test_the_page_of_a_missing_address_leads_to_others(site):
    text = (site / "404.html").read_text("utf-8")
    assert '<a href="index.html">' in text and '<a href="troubleshooting.html">' in text


def test_the_page_of_a_missing_address_has_styles_without_a_server():
    text = '<a href="/."></a><link href="/assets/a.css"><script src="/a.js"></script><a href="//b">'
    local = site_pages.on_post_template(text, "404.html", types.SimpleNamespace(site_url=None))
    assert '"/' not in local.replace('"//b"', "") and 'src="a.js"' in local
    hosted = types.SimpleNamespace(site_url="https://example.org/lowering/")
    assert site_pages.on_post_template(text, "404.html", hosted) == text


@pytest.mark.parametrize(
    "page",
    [*G3DOC.rglob("*.md"), *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md"))],
    ids=lambda path: path.name,
)
def test_what_belongs_to_an_item_of_a_list_is_indented_as_mkdocs_asks_for(page):
    """Python-Markdown takes less than four spaces for the end of a numbered list."""
    in_list = in_fence = False
    before = ""
    for line in page.read_text().splitlines():
        if re.match(r"\d+\. ", line):
            in_list = True
        elif not in_fence and re.match(r"\S", line):
            in_list = False
        if in_list and not in_fence and not before:
            assert not re.match(r" {1,3}\S", line), line
        in_fence ^= line.lstrip().startswith("```")
        before = line
