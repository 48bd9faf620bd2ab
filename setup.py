"""The description of the package for PyPI; all else is in setup.cfg.

PyPI shows README.md without the files beside it. Where REPOSITORY_URL says where these are, as the
workflow of releases does, its links are absolute, and the package has links of its own.
"""

import os
import pathlib
import re

from setuptools import setup

URL = os.environ.get("REPOSITORY_URL", "").rstrip("/")
LINK = re.compile(r"(?P<front>(?P<image>!?)\[[^\]]*\]\()(?P<path>(?![a-z]+:|#)[^)\s]+)\)")


def absolute(link: re.Match[str]) -> str:
    """A link to a file of the repository, or to an image as it is."""
    return f"{link['front']}{URL}/{'raw' if link['image'] else 'blob'}/main/{link['path']})"


README = (pathlib.Path(__file__).parent / "README.md").read_text()

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
