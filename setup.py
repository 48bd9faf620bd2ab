"""The description of the package for PyPI; all else is in setup.cfg.

PyPI shows README.md without the files beside it. Where it is known where these are, its links are
absolute, and the package has links of its own: the workflow of releases sets REPOSITORY_URL, and a
clone of a repository on GitHub knows it.
"""

import os
import pathlib
import re
import subprocess

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent
# Without the name of a user or a password, which the address of a clone may have.
GITHUB = re.compile(r"(?:https://(?:[^@/]+@)?|(?:ssh://)?git@)github\.com[:/](.+?)(?:\.git)?/?\s*")


def repository() -> str:
    """The address of the repository, or "" if it is not known."""
    if url := os.environ.get("REPOSITORY_URL"):
        return url.rstrip("/")
    if not (HERE / ".git").exists():
        return ""
    command = ["git", "-C", str(HERE), "remote", "get-url", "origin"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except OSError:  # There is no git.
        return ""
    match = GITHUB.fullmatch(found)
    return f"https://github.com/{match[1]}" if match else ""


URL = repository()
LINK = re.compile(r"(?P<front>(?P<image>!?)\[[^\]]*\]\()(?P<path>(?![a-z]+:|#)[^)\s]+)\)")


def absolute(link: re.Match[str]) -> str:
    """A link to a file of the repository, or to an image as it is."""
    return f"{link['front']}{URL}/{'raw' if link['image'] else 'blob'}/main/{link['path']})"


README = (HERE / "README.md").read_text()

setup(
    long_description=LINK.sub(absolute, README) if URL else README,
    long_description_content_type="text/markdown",
    project_urls={
        "Homepage": URL,
        "Documentation": f"{URL}/blob/main/README.md",
        "Source": URL,
        "Issues": f"{URL}/issues",
        "Changelog": f"{URL}/blob/main/CHANGELOG.md",
    }
    if URL
    else {},
)
