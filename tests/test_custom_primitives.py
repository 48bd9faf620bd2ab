"""The examples of the page on primitives of one's own do what it says."""

import os
import re
import subprocess
import sys
import tomllib

from tests.helpers import ROOT

PAGE = ROOT / "g3doc/custom_primitives.md"


def blocks(language: str) -> list[str]:
    """The code blocks of the page in a language."""
    fence = rf"^```{language}\n(.*?)^```"
    return re.findall(fence, PAGE.read_text(), re.MULTILINE | re.DOTALL)


def test_examples_run():
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks("python"))],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    printed = re.findall(r"tf\.Tensor\(\[(.*?)\]", result.stdout)
    expected = [(-0.6667, 0, 0.75), (10, 26), (-1.0986, 0), (0.4658, 0.7778)]
    assert [tuple(round(float(x), 4) for x in row.split()) for row in printed] == expected


def test_the_entry_point_is_that_of_the_package():
    (block,) = map(tomllib.loads, blocks("toml"))
    project = tomllib.loads((ROOT / "tests/plugin/pyproject.toml").read_text())["project"]
    assert block["project"]["entry-points"] == project["entry-points"]
