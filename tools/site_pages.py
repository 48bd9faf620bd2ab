"""What MkDocs does to the pages of `g3doc/` for the site; `mkdocs.yml` names this module as a hook.

CHANGELOG.md and CONTRIBUTING.md stand beside `g3doc/` and are pages of the site, too. A link that
leaves `g3doc/` leads to the hosted sources, or is plain text where `repo_url` is not set. Links of
notebooks, which MkDocs leaves as they are, lead to pages in the same way. The page
404.html has links from the root of the site, as a server answers with it at any address; where
`site_url` is not set, its links are those of a file.
"""

import logging
import os
import pathlib
import posixpath
import re
import urllib.parse
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).parents[1]
# Files beside `g3doc/`, by the page that they are.
_BESIDE = {"changelog.md": "CHANGELOG.md", "contributing.md": "CONTRIBUTING.md"}
# How much a search prefers a page to others, by the beginning of its name: who looks for an error
# or a format wants neither recorded results nor the pages for contributors.
_BOOSTS = {
    "troubleshooting": 4,
    "guides/": 2,
    "notebooks/": 0.5,
    **dict.fromkeys(("architecture", "changelog", "contributing", "results", "scaling"), 0.2),
    **dict.fromkeys(
        ("consumers", "convert_models", "jax_primitives", "no_xla", "primitives_"), 0.4
    ),
}
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
_LINK_OF_A_NOTEBOOK = re.compile(
    r'<a\b[^>]*?\bhref="([^"#:/][^"#:]*)(#[^"]*)?"[^>]*>(.*?)</a>', re.DOTALL
)
_FENCE = re.compile(r"^( *```.*?^ *```)", re.DOTALL | re.MULTILINE)

# With --strict, MkDocs counts the warnings of its own loggers.
_log = logging.getLogger("mkdocs.hooks.site_pages")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Adds the pages that stand beside `g3doc/`."""
    for page, name in _BESIDE.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """The text of a page, with links to pages of the site or to hosted sources."""
    name = page.file.src_uri
    found = [boost for start, boost in _BOOSTS.items() if name.startswith(start)]
    if found:
        page.meta["search"] = {"boost": found[0]}
    # Links are relative to where the file is in the checkout.
    folder = posixpath.dirname(_BESIDE.get(name, f"g3doc/{name}"))
    parts = _FENCE.split(markdown)
    parts[::2] = [_LINK.sub(lambda m: _link(m, folder, name, config), text) for text in parts[::2]]
    return "".join(parts)


def on_page_content(html: str, page: Any, config: Any, files: Files, **_: Any) -> str:
    """A page as HTML, in which links of notebooks lead to pages, too."""
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    return _LINK_OF_A_NOTEBOOK.sub(lambda m: _link_of_a_notebook(m, page, config, files), html)


def on_post_template(output_content: str, template_name: str, config: Any, **_: Any) -> str:
    """A page that is made of a template alone, with links that lead somewhere from a file."""
    if template_name != "404.html" or config.site_url:
        return output_content
    relative = re.sub(r'(href=|src=|"search": )"/(?!/)', r'\1"', output_content)
    return relative.replace('"base": "/"', '"base": "."').replace('href="."', 'href="index.html"')


def _link(match: re.Match[str], folder: str, page: str, config: Any) -> str:
    text, target, anchor = match[1], match[2], match[3] or ""
    path = posixpath.normpath(posixpath.join(folder, target))
    inside = _page(path)
    if inside is not None:
        here = posixpath.dirname(page) or "."
        return f"[{text}]({os.path.relpath(inside, here)}{anchor})"
    if not (ROOT / path).exists():
        return match[0]  # MkDocs says that it is broken.
    address = _source(path, config)
    return f"[{text}]({address}{anchor})" if address else text


def _link_of_a_notebook(match: re.Match[str], page: Any, config: Any, files: Files) -> str:
    target, anchor, text = urllib.parse.unquote(match[1]), match[2] or "", match[3]
    folder = posixpath.dirname(f"g3doc/{page.file.src_uri}")
    path = posixpath.normpath(posixpath.join(folder, target))
    file = files.get_file_from_path(_page(path) or "")
    if file is not None and file.inclusion.is_included():
        return f'<a href="{file.url_relative_to(page.file)}{anchor}">{text}</a>'
    if not (ROOT / path).exists():
        _log.warning("%s has a link to %s, which does not exist.", page.file.src_uri, target)
        return match[0]
    address = _source(path, config)
    return f'<a href="{address}{anchor}">{text}</a>' if address else text


def _page(path: str) -> str | None:
    """The page of the site that a file of the checkout is, if it can be one."""
    pages = {source: name for name, source in _BESIDE.items()}
    return pages.get(path, path.removeprefix("g3doc/") if path.startswith("g3doc/") else None)


def _source(path: str, config: Any) -> str | None:
    """The address of a file of the hosted sources, if they are hosted."""
    return f"{config.repo_url.rstrip('/')}/blob/main/{path}" if config.repo_url else None
