"""What MkDocs does to the pages of `g3doc/` for the site; `mkdocs.yml` names this module as a hook.

CHANGELOG.md and CONTRIBUTING.md stand beside `g3doc/` and are pages of the site, too. A link that
leaves `g3doc/` leads to the hosted sources, or is plain text where `repo_url` is not set. The page
404.html has links from the root of the site, as a server answers with it at any address; where
`site_url` is not set, its links are those of a file.
"""

import os
import pathlib
import posixpath
import re
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
_FENCE = re.compile(r"^( *```.*?^ *```)", re.DOTALL | re.MULTILINE)


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


def on_post_template(output_content: str, template_name: str, config: Any, **_: Any) -> str:
    """A page that is made of a template alone, with links that lead somewhere from a file."""
    if template_name != "404.html" or config.site_url:
        return output_content
    relative = re.sub(r'(href=|src=|"search": )"/(?!/)', r'\1"', output_content)
    return relative.replace('"base": "/"', '"base": "."').replace('href="."', 'href="index.html"')


def _link(match: re.Match[str], folder: str, page: str, config: Any) -> str:
    text, target, anchor = match[1], match[2], match[3] or ""
    path = posixpath.normpath(posixpath.join(folder, target))
    pages = {source: name for name, source in _BESIDE.items()}
    inside = pages.get(path, path.removeprefix("g3doc/") if path.startswith("g3doc/") else None)
    if inside is not None:
        here = posixpath.dirname(page) or "."
        return f"[{text}]({os.path.relpath(inside, here)}{anchor})"
    if not (ROOT / path).exists():
        return match[0]  # MkDocs says that it is broken.
    if not config.repo_url:
        return text
    return f"[{text}]({config.repo_url.rstrip('/')}/blob/main/{path}{anchor})"
